"""What /proc says of a process, and of all of them."""

import os

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kilobytes(pid: int) -> int:
    """Its resident set."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise ProcessLookupError(f"no VmRSS for process {pid}")


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def private_kilobytes(pid: int) -> int:
    """Its resident memory that is no file's and is not shared; 0 when the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))
    except FileNotFoundError:
        return 0


def busy_seconds() -> float:
    """What all processors of the machine have done so far, for whomever. What they waited for a hypervisor counts too."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def family_seconds(ancestors: set[int]) -> float:
    """What these processes and all that descend from them have done so far, with those that have ended."""
    ticks, parents = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(name)] = int(fields[1])
        ticks[int(name)] = sum(map(int, fields[11:15]))

    def belongs(pid: int) -> bool:
        while pid not in ancestors:
            if pid not in parents:
                return False
            pid = parents[pid]
        return True

    return sum(count for pid, count in ticks.items() if belongs(pid)) / TICKS
