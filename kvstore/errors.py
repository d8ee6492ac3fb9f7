"""The errors of the kvstore package; those of LMDB and kazoo are translated into them."""


class StoreError(Exception):
    """Stored bytes cannot be read or written; the message has the place, and what to do."""


class EnvelopeError(StoreError):
    """Bytes that are no sound envelope: cut short, of another schema, or damaged."""


class FormatError(StoreError):
    """A file that is no LMDB 0.9 environment, or a damaged one."""


class ZooKeeperError(StoreError):
    """A call that ZooKeeper did not do, with the node and the reason."""


class NotConnectedError(ZooKeeperError):
    """There is no connection, or no answer within the deadline; the call may have happened."""


class SessionLostError(ZooKeeperError):
    """The session is over and its ephemeral nodes are gone: another one has to be opened."""


class AccessError(ZooKeeperError):
    """ZooKeeper does not let this identity in, or not do that."""


class NoNodeError(ZooKeeperError):
    """The node is not there."""


class NodeExistsError(ZooKeeperError):
    """The node is there already."""


class ConflictError(ZooKeeperError):
    """A node is not at the version that the caller knows: another writer was faster."""
