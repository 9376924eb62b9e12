"""What a sandbox gives up besides the network, and an agent's process in a Pod too, without needing privileges."""

import ctypes
import os
import resource

from pilothouse.tools.sandbox.descendants import adopt_orphans, prctl

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_KEPT_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID: what a root user's tools need for files."""

_libc = ctypes.CDLL(None, use_errno=True)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def harden() -> None:
    """Give up what no tool needs: core dumps, being read through /proc, new privileges, capabilities.

    What is created is private to this user. Orphans below this process become its children, so that `reap` finds them.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    prctl(_PR_SET_DUMPABLE, 0)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    adopt_orphans()
    _drop_capabilities()


def _drop_capabilities() -> None:
    """A root user keeps power over files only; nobody else has any capability to drop."""
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    sets = (_Capabilities * 2)()  # Capabilities 0 to 31 and 32 to 63.
    if _libc.capget(ctypes.byref(header), sets) != 0:
        raise OSError(ctypes.get_errno(), "capget failed")
    kept = sets[0].permitted & _KEPT_CAPABILITIES
    sets[0], sets[1] = _Capabilities(kept, kept, 0), _Capabilities(0, 0, 0)
    if _libc.capset(ctypes.byref(header), sets) != 0:
        raise OSError(ctypes.get_errno(), "capset failed")
