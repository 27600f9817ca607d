"""Leader election among the servers of one registry: a lease in the registry, by the registry's clock."""

from __future__ import annotations

import threading
import uuid

import structlog
from sqlalchemy import and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from penstock.control.registry.store import Registry
from penstock.control.registry.tables import leader

log = structlog.get_logger()

ROW = 1


class Leadership:
    """The leader lease from the view of one server. Used by one thread."""

    def __init__(self, registry: Registry, lease_s: float) -> None:
        self.id = str(uuid.uuid4())
        self._registry, self._lease_s = registry, lease_s
        self._leads = threading.Event()
        self._renew_at = 0.0

    @property
    def leads(self) -> bool:
        """Whether this server was the leader at the last check."""
        return self._leads.is_set()

    def look(self, now: float) -> bool:
        """Acquire or renew the lease if due; returns whether this server leads. `now` is monotonic."""
        if self.leads and now < self._renew_at:
            return True
        led, leads = self.leads, self._take()
        self._renew_at = now + self._lease_s / 4
        if leads and not led:
            log.info("this server leads", server=self.id)
            self._leads.set()
        elif led and not leads:
            log.warning("another server leads", server=self.id)
            self._leads.clear()
        return leads

    def resign(self) -> None:
        """Give up the lease, so that another server can lead at once."""
        with self._registry.begin() as conn:
            conn.execute(delete(leader).where(leader.c.id == ROW, leader.c.server == self.id))
        self._leads.clear()

    def _take(self) -> bool:
        with self._registry.engine.connect() as conn:
            other = and_(leader.c.server != self.id, leader.c.until >= self._registry.now(conn))
            if conn.scalar(select(leader.c.id).where(other)) is not None:  # the usual case of a second server
                return False
        try:
            with self._registry.begin() as conn:
                now = self._registry.now(conn)
                mine = and_(leader.c.id == ROW, or_(leader.c.server == self.id, leader.c.until < now))
                values = {"server": self.id, "until": now + self._lease_s}
                if conn.execute(update(leader).where(mine).values(**values)).rowcount:
                    return True
                if conn.scalar(select(leader.c.id)) is not None:
                    return False
                conn.execute(insert(leader).values(id=ROW, **values))
                return True
        except IntegrityError:  # another server was faster
            return False
