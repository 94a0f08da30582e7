"""What was acknowledged, and what may have happened.

Each thing that is written has a set of contents that it may have. An acknowledged write leaves one. A write whose
reply was lost, or was a 5xx, leaves those before it and its own; the thing is then left alone until somebody has
looked, which leaves the one that was found.
"""

from dataclasses import dataclass, field

# The content of what is not there.
ABSENT = None

Content = str | None


@dataclass
class Things:
    """Items, or shares, of one account, by id."""

    possible: dict[str, set[Content]] = field(default_factory=dict)

    def certain(self, present: bool = True) -> list[str]:
        """What may be written to."""
        return sorted(
            name for name, contents in self.possible.items() if len(contents) == 1 and (contents != {ABSENT}) == present
        )

    def acknowledged(self, name: str, content: Content) -> None:
        self.possible[name] = {content}

    def unknown(self, name: str, content: Content) -> None:
        self.possible.setdefault(name, {ABSENT}).add(content)

    def settle(self, found: dict[str, str], what: str) -> list[str]:
        """Compares with what is there, and takes that for what is so. What is wrong."""
        complaints = []
        for name, contents in self.possible.items():
            there = found.get(name, ABSENT)
            if there not in contents:
                complaints.append(f"{what} {name} is {there!s:.30}, not {' or '.join(f'{c!s:.30}' for c in contents)}")
            self.possible[name] = {there}
        complaints += [f"{what} {name} was never written" for name in found.keys() - self.possible.keys()]
        self.possible = {name: contents for name, contents in self.possible.items() if contents != {ABSENT}}
        return complaints


@dataclass
class Account:
    """One account as its owner knows it."""

    userid: str
    #: The password keys that it may have; none when it may not exist.
    keys: set[str]
    #: Whether its registration was acknowledged, or it was found to exist.
    exists: bool
    token: str | None = None
    items: Things = field(default_factory=Things)
    shares: Things = field(default_factory=Things)
    manage_tokens: dict[str, str] = field(default_factory=dict)
    #: A share may have been created whose id is unknown.
    may_have_more_shares: bool = False

    @property
    def is_usable(self) -> bool:
        return self.exists and self.token is not None and len(self.keys) == 1

    @property
    def key(self) -> str:
        (key,) = self.keys
        return key
