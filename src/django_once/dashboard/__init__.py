"""The dashboard, inside Django's admin: pages to look at background work, and acts to steer it."""
