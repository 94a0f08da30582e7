"""Every attack, in the order in which they are carried out."""

from attacks.guessing import DeviceGuesses, WrongLogIns
from attacks.load import Deletions, LargeBatches, LargePages, OneAccount, Pipelines
from attacks.locks import BrokenStatement, LockedAccount, PopularShare, RotationCommit, ShareDeletions
from attacks.memory import Bombs, GuestBodies, HeldBodies, LargeBodies, LargeBodyMemory, MadeUpBombs, UnreadReplies
from attacks.slow import SlowBodies, SlowClients, SlowHandshakes, SlowHeads, SlowReplies, SlowStreams
from attacks.leases import Leases
from attacks.tiny import TinyChunks, TinyFields, TinyRecords, TinyTrailers, WholeChunks
from scene import Attack


def every_attack() -> list[Attack]:
    return [
        BrokenStatement(),
        LockedAccount(),
        RotationCommit(),
        PopularShare(),
        ShareDeletions(),
        Leases(),
        LargeBodies(),
        HeldBodies(),
        GuestBodies(),
        MadeUpBombs(),
        Bombs(),
        UnreadReplies(),
        SlowHandshakes(),
        SlowHeads(),
        SlowBodies(),
        SlowReplies(),
        SlowStreams(),
        SlowClients(),
        WrongLogIns(),
        DeviceGuesses(),
        OneAccount(),
        LargePages(),
        LargeBatches(),
        Pipelines(),
        Deletions(),
        LargeBodyMemory(),
        TinyChunks(),
        WholeChunks(),
        TinyFields(),
        TinyTrailers(),
        TinyRecords(),
    ]
