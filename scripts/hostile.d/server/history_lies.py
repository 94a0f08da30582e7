"""Replies in the right form that say what is not so, of items and their history."""

import base64
import json
import random
import re
import uuid
from typing import Any, ClassVar

from kinds import Flood, Restated
from traffic.relay import STREAM, Exchange, Lie, Reply, Request, problem, with_json


CHANGES = "GET /v1/changes"
BATCH = "POST /v1/items/batch"
ITEM = "GET /v1/items/*"


class Listing(Restated):
    """Changes the pages of /v1/changes."""

    hurry = 8
    calls = (CHANGES,)


class Whole(Lie):
    """Answers each page with the items that the true server has, changed, whatever the cursor is."""

    hurry = 8
    calls = (CHANGES,)
    revision = 10**6

    async def lie(self, exchange: Exchange) -> None:
        request = exchange.request
        if "fields=meta" in request.target:
            return await exchange.pass_on()
        whole = Request("GET", "/v1/changes?limit=100", request.fields, b"")
        known = (await Exchange(whole, exchange.reader, exchange.writer, exchange.origin).forward()).json["changes"]
        reply = await exchange.forward()
        changes = self.changes([change for change in known if change["collection"] != "saltern-chunks"])
        for change in changes:
            self.revision += 1
            change["revision"] = self.revision
        await exchange.send(with_json(reply, {**reply.json, "changes": changes, "more": False}))

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise NotImplementedError


class SwappedBodies(Whole):
    name = "swapped-bodies"
    says = "each item has the body of the next one"

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        others = [change for change in known if change.get("body")]
        bodies = [change["body"] for change in others]
        return [{**change, "body": body} for change, body in zip(others, bodies[1:] + bodies[:1], strict=True)]


class SwappedIdentifiers(Whole):
    name = "swapped-ids"
    says = "each item has the id and the collection of the next one"

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        shifted = known[1:] + known[:1]
        return [
            {**change, "id": other["id"], "collection": other["collection"]}
            for change, other in zip(known, shifted, strict=True)
        ]


class OtherCollections(Whole):
    name = "other-collections"
    says = "items are in another collection, also in that of chunks and of the folder's files"

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = ["files", "saltern-chunks", "notes", "../x", "x" * 10_000]
        return [{**change, "collection": names[index % len(names)]} for index, change in enumerate(known)]


class GarbledBodies(Whole):
    name = "garbled-bodies"
    says = "bodies with a flipped bit, cut, empty, of another format"

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for change in known:
            if not change.get("body"):
                continue
            body = bytearray(base64.b64decode(change["body"]))
            kind = self.random.randrange(5)
            if kind == 0:
                body[self.random.randrange(len(body))] ^= 1 << self.random.randrange(8)
            elif kind == 1:
                del body[self.random.randrange(len(body)) :]
            elif kind == 2:
                body = bytearray()
            elif kind == 3:
                body += self.random.randbytes(100_000)
            else:
                change["format"] = self.random.choice(["rncryptor-v3", "opaque", "", "saltern-99"])
            change["body"] = base64.b64encode(bytes(body)).decode()
        return known


class Tombstones(Whole):
    name = "tombstones"
    says = "every item is deleted"

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        members = ("id", "revision", "collection", "createdAt", "updatedAt")
        return [{**{name: change[name] for name in members}, "deleted": True} for change in known]


class Strangers(Whole):
    name = "strangers"
    says = "a hundred items that do not open, under new ids"

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        model = next(change for change in known if change.get("body"))
        body = base64.b64encode(b"\x01" + random.Random(1).randbytes(160)).decode()
        return [{**model, "id": str(uuid.UUID(int=number)), "body": body} for number in range(1, 101)]


class Repeated(Whole):
    name = "repeated"
    says = "the same item twice in a page, and with two contents"

    def changes(self, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**change} for change in known] + [{**change} for change in reversed(known)]


class HighRevisions(Listing):
    name, says = "high-revisions", "revisions near 2^63"

    def restated(self, request: Request, value: Any) -> Any:
        count = len(value["changes"])
        for index, change in enumerate(value["changes"]):
            change["revision"] = 2**63 - count + index
        return {**value, "revisionBase": 2**63 - 1}


class OldRevisions(Listing):
    name, says = "old-revisions", "revisions that are lower than before, or fall"

    def restated(self, request: Request, value: Any) -> Any:
        for index, change in enumerate(reversed(value["changes"])):
            change["revision"] = index - 5
        return value


class Withheld(Listing):
    name, says = "withheld", "empty pages, with cursors that are right"

    def restated(self, request: Request, value: Any) -> Any:
        return {**value, "changes": []}


class EndlessPages(Listing):
    name, says = "endless-pages", "always another page, with the same cursor, with another one, and with the first one's"

    async def lie(self, exchange: Exchange) -> None:
        request = exchange.request
        # The true server does not have the cursors that are made up here.
        target = re.sub(r"since=x\d+&?", "", request.target)
        asked = Request(request.method, target, request.fields, request.body)
        reply = await Exchange(asked, exchange.reader, exchange.writer, exchange.origin).forward()
        cursor = reply.json["cursor"] if self.count % 3 else f"x{self.count}"
        await exchange.send(with_json(reply, {**reply.json, "more": True, "cursor": cursor}))


class OtherBases(Listing):
    name, says = "other-bases", "another revision base in each reply: the database is restored again and again"

    def restated(self, request: Request, value: Any) -> Any:
        return {**value, "revisionBase": self.count * 1_000}


class Forked(Lie):
    name = "fork"
    says = "batches are acknowledged with the next revisions and not carried out; then the histories are joined"
    hurry = 8
    calls: ClassVar[tuple[str, ...]] = (BATCH,)

    async def lie(self, exchange: Exchange) -> None:
        results = [
            {"id": operation["id"], "revision": max(operation.get("ifRevision") or 0, 0) + 1}
            for operation in exchange.request.json["operations"]
        ]
        await exchange.send(with_json(Reply(200), {"results": results}))


class NotStored(Forked):
    name, says = "not-stored", "batches are acknowledged with new revisions, and thrown away; and so are bodies of files"
    calls = (BATCH, "PUT /v1/items/*")

    async def lie(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.call == BATCH:
            return await super().lie(exchange)
        now = "2026-01-01T00:00:00Z"
        state = {
            "id": request.path.split("/")[3], "revision": 10**6, "collection": "saltern-chunks", "createdAt": now,
            "updatedAt": now, "deleted": False, "format": "saltern-1", "body": "AQ==",
        }  # fmt: skip
        await exchange.send(with_json(Reply(201), state))


class Results(Restated):
    """Changes the results of a batch."""

    hurry = 8
    calls = (BATCH,)

    def restated(self, request: Request, value: Any) -> Any:
        return {"results": self.results(value["results"])}

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise NotImplementedError


class HalfAcknowledged(Results):
    name, says = "half-acknowledged", "a batch is carried out, and half of it acknowledged"

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return results[: len(results) // 2]


class OthersAcknowledged(Results):
    name, says = "others-acknowledged", "a batch is carried out, and others' ids are acknowledged"

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**result, "id": str(uuid.UUID(int=index))} for index, result in enumerate(results)]


class HighAcknowledged(Results):
    name, says = "high-acknowledged", "a batch is carried out, and acknowledged with revisions near 2^63"

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**result, "revision": 2**63 - 1} for result in results]


class HalfStored(Lie):
    name, says = "half-stored", "half of a batch is carried out, and all of it acknowledged"
    hurry = 8
    calls = (BATCH,)

    async def lie(self, exchange: Exchange) -> None:
        operations = exchange.request.json["operations"]
        half = json.dumps({"operations": operations[: (len(operations) + 1) // 2]}).encode()
        reply = await exchange.forward(half)
        if reply.status != 200:
            return await exchange.send(reply)
        results = reply.json["results"]
        last = results[-1]["revision"]
        for operation in operations[len(results) :]:
            last += 1
            results.append({"id": operation["id"], "revision": last})
        await exchange.send(with_json(reply, {"results": results}))


class Unshown(Lie):
    """Carries batches out and acknowledges them. Then listings show something else than what was acknowledged."""

    calls = (BATCH, CHANGES)
    is_to_be_noticed = True

    def __init__(self) -> None:
        #: The operations that were acknowledged, of each item, each with its revision.
        self.acknowledged: dict[str, list[dict[str, Any]]] = {}

    async def lie(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        request = exchange.request
        if reply.status == 200 and request.call == BATCH:
            for operation, result in zip(request.json["operations"], reply.json["results"], strict=True):
                self.acknowledged.setdefault(operation["id"], []).append({**operation, "revision": result["revision"]})
        elif reply.status == 200:
            changes = [self.shown(change) for change in reply.json["changes"]]
            if changes != reply.json["changes"]:
                self.told += 1
            reply = with_json(reply, {**reply.json, "changes": [change for change in changes if change]})
        await exchange.send(reply)

    def shown(self, change: dict[str, Any]) -> dict[str, Any] | None:
        """What a listing shows in the place of a change; None for nothing."""
        raise NotImplementedError

    def first(self, change: dict[str, Any]) -> dict[str, Any] | None:
        """The first acknowledged version of an item, of which a later one was acknowledged."""
        acknowledged = self.acknowledged.get(change["id"], [])
        return acknowledged[0] if len(acknowledged) > 1 else None


class HiddenEdits(Unshown):
    name, says = "hidden-edits", "batches are acknowledged, and no listing has what was in them"
    commands = ("sync", "sync", "sync", "folder")

    def shown(self, change: dict[str, Any]) -> dict[str, Any] | None:
        return None if change["id"] in self.acknowledged else change


class PreviousVersions(Unshown):
    name, says = "previous-versions", "an edit is acknowledged, and listings have the version before, with the edit's revision"
    commands = ("sync", "edit", "sync", "sync")

    def shown(self, change: dict[str, Any]) -> dict[str, Any] | None:
        first = self.first(change)
        if not first or "body" not in change:
            return change
        return {**change, "body": first["body"]}


class PreviousRevisions(PreviousVersions):
    name, says = "previous-revisions", "an edit is acknowledged, and listings have the version before, as it was"

    def shown(self, change: dict[str, Any]) -> dict[str, Any] | None:
        first = self.first(change)
        return {**change, "body": first["body"], "revision": first["revision"]} if first and "body" in change else change


class Undeleted(Unshown):
    name, says = "undeleted", "a deletion is acknowledged, and listings have the item, with the deletion's revision"
    commands = ("sync", "delete", "sync", "sync")

    def shown(self, change: dict[str, Any]) -> dict[str, Any] | None:
        first = self.first(change)
        if not first or not change["deleted"]:
            return change
        sealed: dict[str, Any] = {name: first[name] for name in ("format", "title", "body") if name in first}
        return {**change, "deleted": False, **sealed}


class Conflicts(Lie):
    name, says = "conflicts", "each batch is refused as a conflict with revisions that grow"
    hurry = 8
    calls = (BATCH,)
    revision = 10**6

    async def lie(self, exchange: Exchange) -> None:
        await exchange.send(problem(409, "batch_conflict", conflicts=self.conflicts(exchange.request.json["operations"])))

    def conflicts(self, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.revision += len(operations)
        return [
            conflict(index, operation["id"], self.revision + index) for index, operation in enumerate(operations)
        ]  # fmt: skip


class OddConflicts(Conflicts):
    name, says = "odd-conflicts", "conflicts of operations that were not in the batch: index -1, 2^62, another id"

    def conflicts(self, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [conflict(index, str(uuid.UUID(int=7)), 2**63 - 1) for index in (-1, 0, 1, 2**62, 2**63 - 1)] * 1_000


def conflict(index: int, item: str, revision: int) -> dict[str, Any]:
    return {"index": index, "id": item, "code": "precondition_failed", "revision": revision}


class OtherItem(Lie):
    name, says = "other-item", "GET of an item answers another one, and of a body the bytes of another"
    hurry = 8
    calls = (ITEM,)
    commands = ("arrive",)
    last: bytes | None = None

    async def lie(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        self.last, body = reply.body, self.last or reply.body[:-8] + b"AAAAAA=="
        await exchange.send(Reply(reply.status, reply.fields, body))


class MissingChunks(Lie):
    name, says = "missing-chunks", "pieces of long files are not there, or end early"
    hurry = 8
    calls = (ITEM,)
    commands = ("arrive",)

    async def lie(self, exchange: Exchange) -> None:
        if self.count % 2:
            return await exchange.send(problem(404, "not_found"))
        reply = await exchange.forward()
        await exchange.send(Reply(reply.status, reply.fields, reply.body[: len(reply.body) // 2]))


class OddStream(Flood):
    """Events without end in the stream of changes, and true replies otherwise."""

    hurry = 1
    calls = (f"GET {STREAM}",)
    commands = ("watch",)
    BEGIN = b"HTTP/1.1 200 Flood\r\nContent-Type: text/event-stream\r\n\r\n"

    def objection(self, requests: list[Request]) -> str | None:
        count = len(requests)
        return f"it sent {count} requests in some seconds" if count > 200 else super().objection(requests)


class EventFlood(OddStream):
    name, says = "event-flood", "events without end in the stream of changes"
    floods = ((OddStream.BEGIN, b"id: 1\nevent: change\ndata: {}\n\n" * 1_000),)


class EndlessEvent(OddStream):
    name, says = "endless-event", "a line without end in the stream of changes, then an event of lines without end"
    floods = ((OddStream.BEGIN, b"data: " * 4_000), (OddStream.BEGIN, b"data: x\n" * 4_000))


class StreamEnds(OddStream):
    name, says = "stream-ends", "the stream of changes ends at once, each time"

    async def lie(self, exchange: Exchange) -> None:
        body = b"id: 1\nevent: change\nretry: 0\ndata: {}\n\n"
        await exchange.send(Reply(200, {"content-type": "text/event-stream"}, body))


def history_lies(seed: int) -> list[Lie]:
    plain = [
        SwappedBodies, SwappedIdentifiers, OtherCollections, Tombstones, Strangers, Repeated, HighRevisions,
        OldRevisions, Withheld, EndlessPages, OtherBases, Forked, NotStored, HalfAcknowledged, OthersAcknowledged,
        HighAcknowledged, HalfStored, HiddenEdits, PreviousVersions, PreviousRevisions, Undeleted, Conflicts, OddConflicts, OtherItem, MissingChunks, EventFlood,
        EndlessEvent, StreamEnds,
    ]  # fmt: skip
    return [*(kind() for kind in plain), GarbledBodies(seed)]
