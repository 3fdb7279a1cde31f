"""What cannot apply: each test that is not run against our channels, and why."""

from __future__ import annotations

from collections.abc import Mapping

EXCLUSIONS: Mapping[str, str] = {
    "test_process_notifications_handles_non_json_payloads": (
        "It writes into a column of their table; ours keeps what was told elsewhere."
    ),
    "test_deserialize_post_trigger_channel": (
        "It names its model by an annotation, which theirs never reads, and hands over a payload "
        "written by hand, which names it again."
    ),
}
