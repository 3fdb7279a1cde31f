"""Channels: what users declare, hear and tell.

    @dataclass
    class AuthorTriggerChannel(TriggerChannel):
        model = Author
        lock_notifications = True

    @post_insert_listener(AuthorTriggerChannel)
    def welcome(old: Author, new: Author) -> None: ...

Users' `channels.py`, `listeners.py` and `models.py` import this, so it imports no model.
"""

from __future__ import annotations

from django_once.channels.context import set_notification_context
from django_once.channels.listening import (
    ListenerFilterProvider,
    Trigger,
    listener,
    post_delete_listener,
    post_insert_listener,
    post_save_listener,
    post_update_listener,
    pre_delete_listener,
    pre_insert_listener,
    pre_save_listener,
    pre_update_listener,
    trigger_listener,
)
from django_once.channels.telling import (
    anotify,
    notify,
    process_stored_notifications,
    replay,
)
from django_once.definitions.channel import Channel, TriggerChannel
from django_once.errors import ChannelNotFound, InvalidNotification

__all__ = [
    "Channel",
    "ChannelNotFound",
    "InvalidNotification",
    "ListenerFilterProvider",
    "Trigger",
    "TriggerChannel",
    "anotify",
    "listener",
    "notify",
    "post_delete_listener",
    "post_insert_listener",
    "post_save_listener",
    "post_update_listener",
    "pre_delete_listener",
    "pre_insert_listener",
    "pre_save_listener",
    "pre_update_listener",
    "process_stored_notifications",
    "replay",
    "set_notification_context",
    "trigger_listener",
]
