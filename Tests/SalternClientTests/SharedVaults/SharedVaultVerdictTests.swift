import Cryptography
import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// Verdicts about versions that change after a device has accepted, or has put aside, a version.
@Suite struct SharedVaultVerdictTests {
    /// The server withholds an item from a device.
    private func withhold(_ item: ItemID, from device: PersonDevice, _ cast: SharedVaultCast) {
        let (name, path) = (item.description, "/v1/vaults/\(cast.id)/changes")
        cast.rewrite(device) { target, reply in
            guard target.hasPrefix(path), let changes = reply["changes"] as? [[String: Any]] else { return }
            reply["changes"] = changes.filter { $0["id"] as? String != name }
        }
    }

    /// Ada's device removes Bob and seals, and the server has withheld Bob's edit of an item from it.
    private func removeBob(_ cast: SharedVaultCast, withholding item: ItemID) async throws {
        withhold(item, from: cast.ada, cast)
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        cast.beHonest(to: cast.ada)
    }

    @Test func `a manager's device that came after a writer has left does not seal its edits`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.ada, cast.eve)
        try await cast.shared(cast.bob).leave()
        let tablet = try await cast.people.person("ada")
        for _ in 0..<3 {
            try await cast.sync(tablet)
            // The kit makes no entry with a clock that is off by more than a day.
            cast.people.advance(7 * 3_600)
        }
        #expect(try await !cast.state(tablet).log.unsealed.isEmpty)
        // The device that had the edit lists it.
        try await cast.sync(cast.ada)
        cast.people.advance(120)
        try await cast.sync(cast.ada, tablet)
        #expect(try await cast.state(tablet).log.unsealed.isEmpty)
        for device in [cast.ada, tablet] { #expect(try await device.texts(cast.id) == [item: "of Bob"]) }
    }

    @Test func `edits of a person who joins, writes and leaves between two syncs of a manager count`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.sync(cast.ada, cast.eve)
        let family = try await cast.shared(cast.ada)
        let dora = try await cast.people.person("dora")
        let invitation = try await family.invite(base: SharedVaultPeople.base, role: .writer, code: .none)
        _ = try await dora.vault().shared.join(invitation.link, code: nil, as: "Dora")
        let item = try await cast.write("of Dora", dora)
        try await cast.shared(dora).leave()
        for _ in 0..<2 {
            try await cast.sync(cast.ada)
            cast.people.advance(120)
        }
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(cast.eve, tablet)
        for device in [cast.ada, cast.eve, tablet] { #expect(try await device.texts(cast.id) == [item: "of Dora"]) }
    }

    @Test func `the last edits of a writer who left count, if the only manager appends before a sync`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.bob)
        try await cast.sync(cast.ada, cast.eve)
        try await cast.write("two", cast.bob, item)
        try await cast.sync(cast.eve)
        try await cast.shared(cast.bob).leave()
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, role: .reader, code: .none)
        for _ in 0..<3 {
            try await cast.sync(cast.ada)
            cast.people.advance(120)
        }
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        try await cast.sync(cast.eve)
        for device in [cast.ada, cast.eve] { #expect(try await cast.texts(device) == ["two"]) }
    }

    @Test func `edits of a lost device that are on the server stay when the keys are replaced`() async throws {
        let cast = try await SharedVaultCast()
        let laptop = try await cast.people.person("ada")
        try await cast.sync(laptop)
        let item = try await cast.write("of the lost device", cast.ada)
        try await cast.sync(cast.eve)
        try await laptop.vault().replaceVaultKeys()
        for _ in 0..<2 {
            try await cast.sync(laptop, cast.eve)
            cast.people.advance(120)
        }
        #expect(try await cast.state(laptop).log.unsealed.isEmpty)
        for device in [laptop, cast.eve] {
            #expect(try await device.texts(cast.id) == [item: "of the lost device"])
        }
    }

    @Test(arguments: [1, 130])
    func `a later process knows the versions that waited for a key before their author left`(count: Int) async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        try await cast.shared(cast.eve).rotate()
        try await cast.sync(cast.bob)
        for number in 1...count { try await cast.bob.notes(cast.id).put(Note(text: "\(number)")) }
        try await cast.sync(cast.bob)
        try await cast.shared(cast.bob).leave()
        // The key arrives after the log.
        let ada = VaultLog.MemberID(try cast.member(cast.ada))
        let box = cast.people.onServer(cast.id)?.boxes[ada]
        cast.people.change(cast.id) { $0.boxes[ada] = nil }
        try await cast.sync(cast.ada)
        #expect(try await cast.texts(cast.ada).isEmpty)
        cast.people.change(cast.id) { $0.boxes[ada] = box }
        cast.ada.kill(inExchange: 0, .beforeRequest)
        _ = try? await cast.ada.vault().sync()
        #expect(try await cast.ada.startAgainIfEnded())
        for _ in 0..<3 {
            try await cast.sync(cast.ada)
            cast.people.advance(120)
        }
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        #expect(try await cast.texts(tablet).count == count)
    }

    @Test func `a list that is longer than a later plan permits is fetched`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("one", cast.bob)
        try await cast.write("two", cast.bob)
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        #expect(try await cast.state(cast.ada).log.latestSeals.map(\.seal.count) == [2])
        let tablet = try await cast.people.person("eve")
        cast.rewrite(tablet) { target, reply in
            let smaller: [String: Any] = [
                "usage": ["items": 1, "bytes": 0],
                "limits": ["items": 1, "itemBytes": 1 << 20, "bytes": 1 << 28, "members": 32],
            ]
            if let listed = reply["vaults"] as? [[String: Any]] {
                reply["vaults"] = listed.map { $0.merging(smaller) { $1 } }
            } else if reply["limits"] != nil, target.hasPrefix("/v1/vaults/") {
                reply.merge(smaller) { $1 }
            }
        }
        try await cast.sync(tablet)
        #expect(try await cast.texts(tablet) == ["one", "two"])
    }

    // MARK: Accepted versions

    @Test func `an accepted edit that the list does not have gives way to the version before it`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.ada, cast.bob, cast.eve)
        try await cast.write("of Bob", cast.bob, item)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Bob"])
        try await removeBob(cast, withholding: item)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["one"])
        #expect(try await cast.eve.vault().keptTexts(of: cast.id).contains("of Bob"))
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 0)
        // An edit of the version before it is no older one.
        try await cast.write("two", cast.ada, item)
        try await cast.sync(cast.eve, cast.ada)
        for device in [cast.ada, cast.eve] {
            #expect(try await device.texts(cast.id) == [item: "two"])
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
    }

    /// Ada's laptop has made an edit before an entry, Eve has accepted an edit of Bob after it, and no list has Bob's.
    @Test(arguments: [false, true], [false, true])
    func `an edit over a refused version is not replaced by those who had accepted that one`(
        hasChange: Bool, isLogFirst: Bool
    ) async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.ada)
        let laptop = try await cast.people.person("ada")
        try await cast.sync(cast.ada, laptop, cast.bob, cast.eve)
        try await laptop.notes(cast.id).put(Note(text: "of the laptop"), item)
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
        try await cast.sync(cast.bob)
        try await cast.write("of Bob", cast.bob, item)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Bob"])
        if hasChange { try await cast.eve.notes(cast.id).put(Note(text: "of Eve"), item) }
        // No generation begins, so the laptop's edit keeps its head.
        withhold(item, from: cast.ada, cast)
        try await cast.shared(cast.ada).setRole(cast.member(cast.bob), to: .reader)
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        cast.beHonest(to: cast.ada)
        if isLogFirst { try await cast.eve.vault().shared.refresh() }
        try await cast.sync(laptop)
        #expect(try await laptop.vault().unsentCount(of: cast.id) == 0)
        try await cast.sync(cast.eve, cast.ada, laptop)
        for device in [cast.ada, laptop, cast.eve] {
            #expect(try await device.texts(cast.id)[item] == "of the laptop")
            #expect(try await cast.texts(device) == (hasChange ? ["of the laptop", "of Eve"] : ["of the laptop"]))
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
    }

    @Test func `an accepted item that the list does not have goes to the trash`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.eve)
        try await removeBob(cast, withholding: item)
        let tablet = try await cast.people.person("eve")
        try await cast.sync(cast.eve, tablet)
        for device in [cast.eve, tablet] { #expect(try await cast.texts(device).isEmpty) }
        #expect(try await cast.eve.vault().keptTexts(of: cast.id) == ["of Bob"])
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 0)
    }

    @Test func `a writer whose deletions wait for a person is sealed after the decision`() async throws {
        let cast = try await SharedVaultCast()
        let bob = VaultLog.MemberID(try cast.member(cast.bob))
        let notes = try cast.bob.notes(cast.id)
        for number in 1...30 { try await notes.put(Note(text: "\(number)")) }
        try await cast.sync(cast.bob)
        try await cast.write("of Eve", cast.eve)
        try await cast.sync(cast.ada)
        for id in try await cast.bob.texts(cast.id).keys {
            try await OwnedItems(cast.bob.vault(), of: .vault(cast.id)).delete(id)
        }
        try await cast.sync(cast.bob)
        try await cast.shared(cast.bob).leave()
        try await cast.shared(cast.eve).leave()
        for _ in 0..<3 {
            try await cast.sync(cast.ada)
            cast.people.advance(70)
        }
        #expect(try await cast.state(cast.ada).log.unsealed == [bob])
        #expect(cast.people.vaults.withState { $0.refusals["quota_exceeded"] } == nil)
        #expect(try await cast.texts(cast.ada).count == 31)
        try await OwnedItems(cast.ada.vault(), of: .vault(cast.id)).agreeToDeletions()
        cast.people.advance(70)
        try await cast.sync(cast.ada)
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        #expect(try await cast.texts(tablet) == ["of Eve"])
    }

    @Test func `a seal that the log's rules reject prevents no other seal`() async throws {
        let cast = try await SharedVaultCast()
        let bob = VaultLog.MemberID(try cast.member(cast.bob))
        try await cast.write("of Bob", cast.bob)
        try await cast.write("of Eve", cast.eve)
        try await cast.sync(cast.ada)
        try await cast.shared(cast.bob).leave()
        try await cast.shared(cast.eve).leave()
        cast.ada.link.setAnswer { request in
            guard request.method == .post, request.target.hasSuffix("/log"),
                let entry = try? Entry(MemoryVaults.bytes(MemoryVaults.json(request.body)["entry"])),
                case .seal(let seal) = entry.payload, seal.author == bob
            else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(422, "entry_refused", ["reason": "windingDown"]))
        }
        for _ in 0..<3 {
            try await cast.sync(cast.ada)
            cast.people.advance(70)
        }
        #expect(cast.people.onServer(cast.id)?.log.unsealed == [bob])
    }

    @Test func `an edit that the list has stays`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.eve)
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Bob"])
    }

    // MARK: Versions that wait

    /// Bob's device gets a version of an item whose entry it does not have, beside a change of its own.
    private func waiting(_ cast: SharedVaultCast) async throws -> ItemID {
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.bob)
        try await cast.people.put(versionOfUnknownHead("strange", item, by: cast.eve, cast), item, cast.id)
        try await cast.bob.notes(cast.id).put(Note(text: "two"), item)
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 1)
        return item
    }

    /// A version that names an entry which no log has.
    private func versionOfUnknownHead(
        _ text: String, _ item: ItemID, by device: PersonDevice, _ cast: SharedVaultCast
    ) async throws -> ItemContent {
        let state = try await cast.state(device)
        let body = SharedVaultCast.item(text).body
        let statement = try #require(
            EditStatement(
                item: VaultItemID(item), collection: "notes", number: .first, previous: .none, title: nil, body: body))
        let head = Head(number: try #require(EntryNumber(4_000)), hash: state.log.head.hash)
        let signed = try SignedBody(body, statement, by: state.signer, head)
        let key = try #require(state.presentKey.flatMap { DataKey($0.bytes) })
        let place = SealedBox.Place(.vaultBody, account: AccountID(cast.id.uuid), item: item, collection: "notes")
        return ItemContent(
            collection: "notes", format: SealedBox.format,
            body: try SealedBox.seal(signed.bytes, .first, at: place, with: key))
    }

    @Test func `a version that was accepted in the meantime no longer holds an edit back`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await waiting(cast)
        let honest = try await #require(cast.ada.vault().storedContent(item, cast.id))
        try await cast.people.put(honest, item, cast.id)
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        try await cast.sync(cast.ada)
        #expect(try await cast.texts(cast.ada) == ["two"])
    }

    @Test func `a version that the server no longer has holds no edit back`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await waiting(cast)
        cast.people.onServer(cast.id)?.items.purge(item)
        try await cast.sync(cast.bob, cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
    }

    @Test func `a deletion is sent when its version comes back after one that was set aside`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.bob)
        let content = try await #require(cast.ada.vault().storedContent(item, cast.id))
        try await cast.people.put(versionOfUnknownHead("strange", item, by: cast.eve, cast), item, cast.id)
        try await OwnedItems(cast.bob.vault(), of: .vault(cast.id)).delete(item)
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 1)
        try await cast.people.put(content, item, cast.id)
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        try await cast.sync(cast.ada)
        for device in [cast.ada, cast.bob] { #expect(try await cast.texts(device).isEmpty) }
    }

    @Test func `bytes under a key that no generation has hold no edit and no deletion back`() async throws {
        let cast = try await SharedVaultCast()
        let (edited, deleted) = (try await cast.write("one", cast.ada), try await cast.write("other", cast.ada))
        try await cast.sync(cast.bob)
        for item in [edited, deleted] {
            let content = try await #require(cast.ada.vault().storedContent(item, cast.id))
            var body = content.body.bytes
            for index in 1...4 { body[index] ^= 0xFF }
            try await cast.people.put(
                ItemContent(collection: "notes", format: SealedBox.format, body: body), item, cast.id)
        }
        try await cast.bob.notes(cast.id).put(Note(text: "two"), edited)
        try await OwnedItems(cast.bob.vault(), of: .vault(cast.id)).delete(deleted)
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        for device in [cast.ada, cast.eve] {
            try await cast.sync(device)
            #expect(try await device.texts(cast.id) == [edited: "two"])
        }
    }

    @Test func `many versions that wait hold back no edit whose version is decided`() async throws {
        let cast = try await SharedVaultCast()
        let items = (0...SetAsideVersions.singleFetches).map { _ in ItemID.random() }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        for item in items { try await cast.ada.notes(cast.id).put(Note(text: "one"), item) }
        try await cast.sync(cast.ada, cast.bob)
        for item in items.dropLast() {
            try await cast.people.put(versionOfUnknownHead("strange", item, by: cast.eve, cast), item, cast.id)
        }
        // Only a change of its item asks about bytes under a key that no generation has.
        let last = try #require(items.last)
        let content = try await #require(cast.ada.vault().storedContent(last, cast.id))
        var body = content.body.bytes
        for index in 1...4 { body[index] ^= 0xFF }
        try await cast.people.put(
            ItemContent(collection: "notes", format: SealedBox.format, body: body), last, cast.id)
        for item in items { try await cast.bob.notes(cast.id).put(Note(text: "two"), item) }
        try await cast.sync(cast.bob, cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == SetAsideVersions.singleFetches)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        #expect(try await tablet.texts(cast.id)[last] == "two")
    }

    @Test func `a version of an entry that nobody has holds edits back until its author is removed`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await waiting(cast)
        try await cast.shared(cast.ada).remove([cast.member(cast.eve)])
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        try await cast.sync(cast.ada)
        #expect(try await cast.ada.texts(cast.id) == [item: "two"])
    }

    /// An item of Ada that a reader has overwritten on the server.
    private func itemWithForgedVersion(_ cast: SharedVaultCast) async throws -> ItemID {
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.bob, cast.eve)
        let forged = try await cast.sealing(cast.eve).seal(
            SharedVaultCast.item("forged"), item, collection: "notes", .first)
        try await cast.people.put(forged, item, cast.id)
        return item
    }

    @Test func `an item with a version that never counts can be deleted`() async throws {
        let cast = try await SharedVaultCast(eve: .reader)
        let item = try await itemWithForgedVersion(cast)
        try await OwnedItems(cast.bob.vault(), of: .vault(cast.id)).delete(item)
        try await cast.sync(cast.bob)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        try await cast.sync(cast.ada)
        for device in [cast.ada, cast.bob] { #expect(try await cast.texts(device).isEmpty) }
    }

    @Test func `the finding about a version that never counts ends on the device that replaces it`() async throws {
        let cast = try await SharedVaultCast(eve: .reader)
        let item = try await itemWithForgedVersion(cast)
        try await cast.sync(cast.ada, cast.bob)
        for device in [cast.ada, cast.bob] {
            #expect(try await cast.shared(device).problems.contains(.putAside(count: 1)))
        }
        try await cast.write("two", cast.bob, item)
        try await cast.sync(cast.ada)
        for device in [cast.ada, cast.bob] {
            #expect(try await cast.texts(device) == ["two"])
            #expect(try await cast.shared(device).problems.isEmpty)
        }
    }

    @Test func `an edit of a member whose join has not arrived is not overwritten`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.bob)
        try await cast.bob.notes(cast.id).put(Note(text: "of Bob"), item)
        let carol = try await cast.people.person("carol")
        try await cast.people.join(cast.shared(cast.ada), carol.vault(), as: "Carol")
        try await cast.sync(carol)
        try await cast.write("of Carol", carol, item)
        try await cast.sync(cast.bob, cast.ada, carol)
        for device in [cast.bob, cast.ada, carol] {
            #expect(try await cast.texts(device) == ["of Bob", "of Carol"])
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
    }
}
