"""Keeps a sandbox's processes away from the other processes of the same user, where the kernel has Landlock.

On this machine the agent runs as the same user: without this, a command reads the agent's environment and memory
through /proc, or kills it. In a Pod the sandbox has a user and a container of its own, and this is a second wall.
"""

import ctypes
import os

_SYS_CREATE_RULESET, _SYS_ADD_RULE, _SYS_RESTRICT_SELF = 444, 445, 446  # The same on every architecture.
_GET_VERSION = 1
_RULE_PATH_BENEATH = 1
_ACCESS_FS_REFER = 1 << 13
_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1 << 0, 1 << 1
_FIRST_WITH_REFER, _FIRST_WITH_SCOPES = 2, 6  # Linux 5.19 and 6.12.

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_fs", ctypes.c_uint64), ("handled_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine() -> None:
    """Refuse this process and its children to read or trace any process that is not below it.

    From Linux 6.12 on also to signal one, or to connect to its abstract sockets. Files stay as they are. Does
    nothing where the kernel has no Landlock, or the first version of it. Needs no_new_privs.
    """
    version = _libc.syscall(_SYS_CREATE_RULESET, None, ctypes.c_size_t(0), _GET_VERSION)
    if version < _FIRST_WITH_REFER:
        return
    scoped = _SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL if version >= _FIRST_WITH_SCOPES else 0
    ruleset = _create(_Ruleset(_ACCESS_FS_REFER, 0, scoped))
    try:
        _allow_renames(ruleset)
        _check(_libc.syscall(_SYS_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _create(ruleset: _Ruleset) -> int:
    size = ctypes.sizeof(ruleset) if ruleset.scoped else ctypes.sizeof(ctypes.c_uint64)
    return _check(_libc.syscall(_SYS_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0))


def _allow_renames(ruleset: int) -> None:
    """A ruleset must handle something, and every ruleset refuses renames between directories unless allowed."""
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(_ACCESS_FS_REFER, root)
        _check(_libc.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(root)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
