"""Replies in the right form that say what is not so, of items and their history."""

import base64
import json
import random
import uuid
from typing import Any

from traffic.relay import Exchange, Lie, Reply, Request, problem, with_json


class Listing(Lie):
    """Changes the pages of /v1/changes."""

    hurry = 20

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.path != "/v1/changes" or reply.status != 200:
            return reply
        return with_json(reply, self.page(request, json.loads(reply.body)))

    def page(self, request: Request, page: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


def everything(reply: Reply) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = json.loads(reply.body)["changes"]
    return changes


class Whole(Listing):
    """Begins each page with the items that the true server has, changed, whatever the cursor is."""

    def __init__(self) -> None:
        self.revision = 10**6

    async def answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path != "/v1/changes" or "fields=meta" in request.target:
            return await super().answer(exchange)
        whole = Request("GET", "/v1/changes?limit=100", request.fields, b"")
        known = everything(await Exchange(whole, exchange.reader, exchange.writer, exchange.origin).forward())
        reply = await exchange.forward()
        page = json.loads(reply.body)
        changes = self.changes([change for change in known if change["collection"] != "saltern-chunks"])
        for change in changes:
            self.revision += 1
            change["revision"] = self.revision
        await exchange.send(with_json(reply, {**page, "changes": changes, "more": False}))

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
        super().__init__()
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
    name = "high-revisions"
    says = "revisions near 2^63"

    def page(self, request: Request, page: dict[str, Any]) -> dict[str, Any]:
        count = len(page["changes"])
        for index, change in enumerate(page["changes"]):
            change["revision"] = 2**63 - count + index
        return {**page, "revisionBase": 2**63 - 1}


class OldRevisions(Listing):
    name = "old-revisions"
    says = "revisions that are lower than before, or fall"

    def page(self, request: Request, page: dict[str, Any]) -> dict[str, Any]:
        for index, change in enumerate(reversed(page["changes"])):
            change["revision"] = index - 5
        return page


class Withheld(Listing):
    name = "withheld"
    says = "empty pages, with cursors that are right"

    def page(self, request: Request, page: dict[str, Any]) -> dict[str, Any]:
        return {**page, "changes": []}


class EndlessPages(Listing):
    name = "endless-pages"
    says = "always another page, with the same cursor, with another one, and with the first one's"

    def __init__(self) -> None:
        self.count = 0

    def page(self, request: Request, page: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        cursor = page["cursor"] if self.count % 3 else f"x{self.count}"
        return {**page, "more": True, "cursor": cursor}


class OtherBases(Listing):
    name = "other-bases"
    says = "another revision base in each reply: the database is restored again and again"

    def __init__(self) -> None:
        self.count = 0

    def page(self, request: Request, page: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        return {**page, "revisionBase": self.count * 1_000}


class Forked(Lie):
    name = "fork"
    says = "batches are acknowledged with the next revisions and not carried out; then the histories are joined"
    hurry = 20

    async def answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.call == "POST /v1/items/batch":
            results = [
                {"id": operation["id"], "revision": max(operation.get("ifRevision") or 0, 0) + 1}
                for operation in request.json["operations"]
            ]
            return await exchange.send(Reply(200, {}, json.dumps({"results": results}).encode()))
        await super().answer(exchange)


class NotStored(Forked):
    name = "not-stored"
    says = "batches are acknowledged with new revisions, and thrown away; and so are bodies of files"

    async def answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "PUT" and request.path.startswith("/v1/items/"):
            now = "2026-01-01T00:00:00Z"
            state = {
                "id": request.path.split("/")[3], "revision": 10**6, "collection": "saltern-chunks", "createdAt": now,
                "updatedAt": now, "deleted": False, "format": "saltern-1", "body": "AQ==",
            }  # fmt: skip
            return await exchange.send(Reply(201, {}, json.dumps(state).encode()))
        await super().answer(exchange)


class Results(Lie):
    """Changes what a batch has come to."""

    hurry = 20
    #: Whether the true server gets the batch.
    passes = True

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.call != "POST /v1/items/batch":
            return await super().answer(exchange)
        reply = await exchange.forward()
        if reply.status == 200:
            reply = with_json(reply, {"results": self.results(json.loads(reply.body)["results"])})
        await exchange.send(reply)

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise NotImplementedError


class HalfAcknowledged(Results):
    name = "half-acknowledged"
    says = "a batch is carried out, and half of it acknowledged"

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return results[: len(results) // 2]


class OthersAcknowledged(Results):
    name = "others-acknowledged"
    says = "a batch is carried out, and others' ids are acknowledged"

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**result, "id": str(uuid.UUID(int=index))} for index, result in enumerate(results)]


class HighAcknowledged(Results):
    name = "high-acknowledged"
    says = "a batch is carried out, and acknowledged with revisions near 2^63"

    def results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**result, "revision": 2**63 - 1} for result in results]


class HalfStored(Lie):
    name = "half-stored"
    says = "half of a batch is carried out, and all of it acknowledged"
    hurry = 20

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.call != "POST /v1/items/batch":
            return await super().answer(exchange)
        operations = exchange.request.json["operations"]
        half = json.dumps({"operations": operations[: (len(operations) + 1) // 2]}).encode()
        reply = await exchange.forward(half)
        if reply.status != 200:
            return await exchange.send(reply)
        results = json.loads(reply.body)["results"]
        last = results[-1]["revision"]
        for operation in operations[len(results) :]:
            last += 1
            results.append({"id": operation["id"], "revision": last})
        await exchange.send(with_json(reply, {"results": results}))


class ConflictsWithoutEnd(Lie):
    name = "conflicts"
    says = "each batch is refused as a conflict with revisions that grow"
    hurry = 20

    def __init__(self) -> None:
        self.revision = 10**6

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.call != "POST /v1/items/batch":
            return await super().answer(exchange)
        conflicts = []
        for index, operation in enumerate(exchange.request.json["operations"]):
            self.revision += 1
            conflict = {"index": index, "id": operation["id"], "code": "precondition_failed", "revision": self.revision}
            conflicts.append(conflict)
        await exchange.send(problem(409, "batch_conflict", conflicts=conflicts))


class OddConflicts(ConflictsWithoutEnd):
    name = "odd-conflicts"
    says = "conflicts of operations that were not in the batch: index -1, 2^62, another id"

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.call != "POST /v1/items/batch":
            return await Lie.answer(self, exchange)
        conflicts = [
            {"index": index, "id": str(uuid.UUID(int=7)), "code": "precondition_failed", "revision": 2**63 - 1}
            for index in (-1, 0, 1, 2**62, 2**63 - 1)
        ]
        await exchange.send(problem(409, "batch_conflict", conflicts=conflicts * 1_000))


class OtherItem(Lie):
    name = "other-item"
    says = "GET of an item answers another one, and of a body the bytes of another"
    hurry = 20
    commands = ("arrive",)

    def __init__(self) -> None:
        self.last: bytes | None = None

    async def answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method != "GET" or not request.path.startswith("/v1/items/"):
            return await super().answer(exchange)
        reply = await exchange.forward()
        self.last, body = reply.body, self.last or reply.body[:-8] + b"AAAAAA==" [:8]
        await exchange.send(Reply(reply.status, reply.fields, body))


class MissingChunks(Lie):
    name = "missing-chunks"
    says = "pieces of long files are not there, or end early"
    hurry = 20
    commands = ("arrive",)

    def __init__(self) -> None:
        self.count = 0

    async def answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "GET" and request.path.startswith("/v1/items/"):
            self.count += 1
            if self.count % 2:
                return await exchange.send(problem(404, "not_found"))
            reply = await exchange.forward()
            return await exchange.send(Reply(reply.status, reply.fields, reply.body[: len(reply.body) // 2]))
        await super().answer(exchange)


class SilentStream(Lie):
    """Changes the stream of changes alone."""

    hurry = 1
    commands = ("watch",)


class EventFlood(SilentStream):
    name = "event-flood"
    says = "events without end in the stream of changes"

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.path != "/v1/changes/stream":
            return await super().answer(exchange)
        await exchange.write(b"HTTP/1.1 200 Flood\r\nContent-Type: text/event-stream\r\n\r\n")
        await exchange.flood(b"id: 1\nevent: change\ndata: {}\n\n" * 1_000)
        exchange.end()

    def objection(self, requests: list[Request]) -> str | None:
        count = len(requests)
        return f"it sent {count} requests in some seconds" if count > 200 else super().objection(requests)


class EndlessEvent(SilentStream):
    name = "endless-event"
    says = "a line without end in the stream of changes, then an event of lines without end"

    def __init__(self) -> None:
        self.count = 0

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.path != "/v1/changes/stream":
            return await super().answer(exchange)
        self.count += 1
        await exchange.write(b"HTTP/1.1 200 Flood\r\nContent-Type: text/event-stream\r\n\r\n")
        await exchange.flood((b"data: " if self.count % 2 else b"data: x\n") * 4_000)
        exchange.end()


class StreamEnds(EventFlood):
    name = "stream-ends"
    says = "the stream of changes ends at once, each time"

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.path != "/v1/changes/stream":
            return await Lie.answer(self, exchange)
        body = b"id: 1\nevent: change\nretry: 0\ndata: {}\n\n"
        await exchange.send(Reply(200, {"content-type": "text/event-stream"}, body))


def history_lies(seed: int) -> list[Lie]:
    plain = [
        SwappedBodies, SwappedIdentifiers, OtherCollections, Tombstones, Strangers, Repeated, HighRevisions,
        OldRevisions, Withheld, EndlessPages, OtherBases, Forked, NotStored, HalfAcknowledged, OthersAcknowledged,
        HighAcknowledged, HalfStored, ConflictsWithoutEnd, OddConflicts, OtherItem, MissingChunks, EventFlood,
        EndlessEvent, StreamEnds,
    ]  # fmt: skip
    return [*(kind() for kind in plain), GarbledBodies(seed)]
