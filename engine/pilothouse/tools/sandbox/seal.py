"""The seal: a seccomp filter that a sandbox puts on itself and that all its children inherit.

Containers of one Pod share a network, and a NetworkPolicy cannot tell them apart. A filter of our own needs no
privilege, works under Pod Security *restricted*, cannot be taken off again, and leaves AF_UNIX sockets only.
"""

import errno
import socket
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from pilothouse.tools.sandbox.errors import SealUnavailable

if TYPE_CHECKING:
    from pyseccomp import SyscallFilter


class Refusal(NamedTuple):
    """System calls that fail in a sealed process; a number stands for a call that libseccomp cannot name yet."""

    calls: tuple[str | int, ...]
    why: str
    errno: int = errno.EPERM


REFUSED = (
    Refusal(("io_uring_setup", "io_uring_enter", "io_uring_register"), "opens sockets without socket()"),
    Refusal(("ptrace", "process_vm_readv", "process_vm_writev", "kcmp"), "reads or drives another process"),
    Refusal(("pidfd_getfd",), "takes an open socket from another process"),
    Refusal(("mq_open", "mq_unlink"), "message queues are those of all containers of a Pod"),
    Refusal(("bpf", "perf_event_open", "userfaultfd"), "kernel attack surface that no tool needs"),
    Refusal(("keyctl", "add_key", "request_key"), "kernel keyrings are not namespaced"),
    Refusal(("setns", "unshare"), "a namespace of its own gives capabilities in it"),
    Refusal(("clone3",), "its flags are behind a pointer; libc falls back to clone()", errno.ENOSYS),
    Refusal(("mount", "umount2", "mount_setattr", "pivot_root", "chroot"), "changes what paths mean"),
    Refusal(("fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "move_mount", 467), "mounts, the newer way"),
    Refusal(("open_by_handle_at", "name_to_handle_at"), "opens files without a path"),
    Refusal(("kexec_load", "kexec_file_load", "reboot"), "replaces or stops the kernel"),
    Refusal(("init_module", "finit_module", "delete_module"), "loads code into the kernel"),
    Refusal(("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog"), "administers the machine"),
    Refusal(("settimeofday", "clock_settime", "clock_adjtime", "adjtimex"), "sets the machine's clock"),
)

NAMESPACE_FLAGS = {
    "CLONE_NEWNS": 0x00020000,
    "CLONE_NEWCGROUP": 0x02000000,
    "CLONE_NEWUTS": 0x04000000,
    "CLONE_NEWIPC": 0x08000000,
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000,
}
"""Flags that make clone() fail, as unshare() does."""

TERMINAL_INPUT = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C}
"""ioctl() requests that type into a terminal: the one the user started us from, perhaps."""


def seal() -> None:
    """Seal this process and every child it will have; raises `SealUnavailable`.

    Checked afterwards, by trying: an Internet socket is refused, a socket pair works.
    """
    try:
        import pyseccomp  # Looks for libseccomp when it is imported.
    except (ImportError, RuntimeError, OSError) as error:
        raise SealUnavailable(f"libseccomp 2 is missing: {error}") from error
    try:
        _build_filter(pyseccomp).load()
    except OSError as error:
        raise SealUnavailable(f"the kernel refused the seccomp filter: {error}") from error
    _check_that_it_holds()


def _build_filter(pyseccomp: ModuleType) -> "SyscallFilter":
    """Everything is allowed but what the tables name; a call of a foreign architecture kills the process."""
    rules: SyscallFilter = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)
    for refusal in REFUSED:
        for call in refusal.calls:
            rules.add_rule(pyseccomp.ERRNO(refusal.errno), call)
    refuse = pyseccomp.ERRNO(errno.EPERM)
    for call in ("socket", "socketpair"):
        other_family = pyseccomp.Arg(0, pyseccomp.NE, socket.AF_UNIX)
        rules.add_rule(pyseccomp.ERRNO(errno.EACCES), call, other_family)
    for flag in NAMESPACE_FLAGS.values():
        rules.add_rule(refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    for request in TERMINAL_INPUT.values():
        rules.add_rule(refuse, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, request))
    return rules


def _check_that_it_holds() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
        except PermissionError:
            continue
        except OSError as error:
            raise SealUnavailable(f"{family.name} sockets fail for another reason than the seal: {error}") from error
        raise SealUnavailable(f"{family.name} sockets still open after the filter was loaded")
    for end in socket.socketpair():
        end.close()
