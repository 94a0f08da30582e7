import Cryptography
import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// Schedules of honest devices and an honest server in which edits, keys or seals meet.
@Suite struct SharedVaultScheduleTests {
    @Test func `an edit that is unsent at a rotation is sent under the new key`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.ada.notes(cast.id).put(Note(text: "of Ada"))
        try await cast.bob.notes(cast.id).put(Note(text: "of Bob"))
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.ada, cast.bob, cast.ada, cast.eve)
        for device in [cast.ada, cast.bob, cast.eve] {
            #expect(try await cast.texts(device) == ["of Ada", "of Bob"])
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
    }

    @Test func `edits under keys of several generations are sent together`() async throws {
        let cast = try await SharedVaultCast()
        var expected: Set<String> = []
        for number in 1...3 {
            try await cast.bob.notes(cast.id).put(Note(text: "\(number)"))
            expected.insert("\(number)")
            try await cast.shared(cast.ada).rotate()
            try await cast.bob.vault().shared.refresh()
        }
        try await cast.sync(cast.bob, cast.ada)
        #expect(try await cast.texts(cast.ada) == expected)
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
    }

    @Test func `a lowered writer keeps unsent edits on the device`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("first", cast.ada)
        try await cast.sync(cast.bob)
        try await cast.bob.notes(cast.id).put(Note(text: "unsent edit"), item)
        try await cast.bob.notes(cast.id).put(Note(text: "unsent note"))
        try await cast.shared(cast.ada).setRole(cast.member(cast.bob), to: .reader)
        try await cast.write("second", cast.ada, item)
        try await cast.sync(cast.bob, cast.bob)
        let kept = try await cast.texts(cast.bob).union(cast.bob.vault().keptTexts(of: cast.id))
        #expect(kept.isSuperset(of: ["second", "unsent edit", "unsent note"]))
        #expect(try await cast.bob.texts(cast.id)[item] == "second")
        #expect(try await cast.texts(cast.ada) == ["second"])
    }

    @Test func `a removed writer keeps unsent edits on the device`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.bob.notes(cast.id).put(Note(text: "unsent note"))
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        for _ in 0..<2 { _ = try? await cast.bob.vault().sync() }
        let kept = try await cast.texts(cast.bob).union(cast.bob.vault().keptTexts(of: cast.id))
        #expect(kept.contains("unsent note"))
    }

    @Test func `a reader with a conflict after a restore syncs on`() async throws {
        let cast = try await SharedVaultCast(eve: .reader)
        let item = try await cast.write("before the backup", cast.ada)
        try await cast.sync(cast.eve)
        let backup = cast.people.vaults.backUp()
        try await cast.write("lost with the database", cast.bob, item)
        try await cast.sync(cast.eve, cast.ada)
        cast.people.vaults.restore(backup)
        try await cast.sync(cast.eve, cast.ada, cast.bob, cast.eve, cast.ada, cast.eve)
        for device in [cast.ada, cast.bob, cast.eve] {
            #expect(try await cast.texts(device).contains("lost with the database"))
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
        try await cast.write("later", cast.bob)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve).contains("later"))
    }

    @Test func `items under an earlier key come back after a restore`() async throws {
        let cast = try await SharedVaultCast()
        let backup = cast.people.vaults.backUp()
        try await cast.write("of the first key", cast.bob)
        try await cast.sync(cast.ada)
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.ada, cast.bob)
        cast.people.vaults.restore(backup)
        for _ in 0..<3 { try await cast.sync(cast.ada, cast.bob, cast.eve) }
        let tablet = try await cast.people.person("eve")
        try await cast.sync(tablet)
        for device in [cast.ada, cast.bob, cast.eve, tablet] {
            #expect(try await cast.texts(device) == ["of the first key"])
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
    }

    @Test func `signed heads that a restored server has lost are sent again`() async throws {
        let cast = try await SharedVaultCast()
        let backup = cast.people.vaults.backUp()
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
        for _ in 0..<2 { try await cast.sync(cast.ada, cast.bob, cast.eve) }
        cast.people.vaults.restore(backup)
        for _ in 0..<3 { try await cast.sync(cast.ada, cast.bob, cast.eve) }
        let vault = try #require(cast.people.onServer(cast.id))
        #expect(!vault.isRecovering)
        for member in vault.log.presentMembers {
            #expect(vault.seen[member.id]?["number"] as? Int == vault.entries.count)
        }
    }

    @Test func `a former member's provisional entry is replaced by the owner's after a restore`() async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        let backup = cast.people.vaults.backUp()
        try await cast.shared(cast.ada).remove([cast.member(cast.eve)])
        try await cast.sync(cast.ada, cast.bob)
        let words = try await cast.shared(cast.ada).verificationWords
        let former = try await cast.state(cast.eve)
        cast.people.vaults.restore(backup)
        // Eve is a manager of the restored log again, and a helper puts a new entry of hers back.
        let entry = try EntryWriter.entry(
            .leave, by: former.signer, after: former.log, at: EntryTime(Date()))
        cast.people.change(cast.id) { vault in
            try? vault.log.append(entry)
            vault.entries.append(entry)
        }
        for _ in 0..<3 { try await cast.sync(cast.ada, cast.bob) }
        for device in [cast.ada, cast.bob] {
            let shared = try await cast.shared(device)
            #expect(shared.verificationWords == words && shared.members.count == 2)
            #expect(shared.problems.allSatisfy { !$0.stopsWriting })
        }
        #expect(cast.people.onServer(cast.id)?.isRecovering == false)
    }

    @Test func `the edits of a leaver count for all, also for those who fetch them with its leave`() async throws {
        let cast = try await SharedVaultCast(eve: .writer)
        try await cast.write("of Bob", cast.bob)
        try await cast.shared(cast.bob).leave()
        try await cast.eve.vault().sync()
        try await cast.write("of Eve, who knows the leave", cast.eve)
        try await cast.sync(cast.ada)
        cast.people.advance(120)
        try await cast.sync(cast.ada, cast.ada)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(cast.eve, tablet)
        for device in [cast.ada, cast.eve, tablet] {
            #expect(try await cast.texts(device) == ["of Bob", "of Eve, who knows the leave"])
        }
    }

    /// - Parameter isLater: True when both devices have the leave, and the entry is due to be sealed.
    @Test(arguments: [false, true])
    func `two managers' devices that seal and rotate at once fail neither`(isLater: Bool) async throws {
        for exchange in 0..<24 {
            let cast = try await SharedVaultCast(bob: .manager)
            try await cast.write("of Eve", cast.eve)
            try await cast.shared(cast.eve).leave()
            if isLater {
                try await cast.sync(cast.ada, cast.bob)
                cast.people.advance(4_000)
            }
            let failure = Locked<(any Error)?>(nil)
            let other = try cast.bob.vault()
            cast.ada.link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: .beforeRequest) {
                    do { _ = try await other.sync() } catch { failure.withLock { $0 = error } }
                })
            do { try await cast.sync(cast.ada) } catch { Issue.record("exchange \(exchange): \(error)") }
            if let error = failure.withLock(\.self) { Issue.record("exchange \(exchange), Bob: \(error)") }
            if cast.ada.link.endInterruption() != nil { break }
            for _ in 0..<2 {
                cast.people.advance(4_000)
                try await cast.sync(cast.bob, cast.ada)
            }
            let log = try #require(cast.people.onServer(cast.id)).log
            #expect(log.generations.count == 2 && log.unsealed.isEmpty && !log.isRotationDue, "exchange \(exchange)")
            for device in [cast.ada, cast.bob] {
                #expect(try await cast.texts(device) == ["of Eve"], "exchange \(exchange)")
            }
        }
    }

    @Test func `a list that a new device cannot fetch at first is fetched later`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Eve", cast.eve)
        try await cast.shared(cast.ada).remove([cast.member(cast.eve)])
        let tablet = try await cast.people.person("bob")
        tablet.link.setUnreachable { $0.target.contains("/seals/") }
        for _ in 0..<2 { _ = try? await tablet.vault().sync() }
        tablet.link.setUnreachable(false)
        try await cast.sync(tablet, tablet)
        #expect(try await cast.texts(tablet) == ["of Eve"])
    }

    @Test func `a list that the server has dropped in the meantime ends no membership`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Eve", cast.eve)
        try await cast.sync(cast.bob)
        try await cast.bob.notes(cast.id).put(Note(text: "of Bob"))
        try await cast.shared(cast.ada).remove([cast.member(cast.eve)])
        cast.bob.link.setAnswer { request in
            guard request.target.contains("/seals/") else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(404, "not_found"))
        }
        let report = try await cast.bob.vault().sync()
        #expect(report.vaultFailures.isEmpty)
        #expect(try await cast.shared(cast.bob).problems.allSatisfy { !$0.stopsWriting })
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        cast.bob.link.setAnswer { _ in nil }
        try await cast.sync(cast.ada, cast.bob)
        for device in [cast.ada, cast.bob] { #expect(try await cast.texts(device) == ["of Eve", "of Bob"]) }
    }

    @Test func `a vault with an invalid log blocks neither the account nor other vaults`() async throws {
        let cast = try await SharedVaultCast()
        let club = try await cast.ada.vault().shared.make(name: "Club", as: "Ada")
        try await cast.people.join(club, cast.bob.vault(), as: "Bob")
        try await cast.sync(cast.ada)
        _ = try await club.invite(base: SharedVaultPeople.base)
        let name = cast.id.description
        let hash = Base64.encodeToString([UInt8](repeating: 1, count: 32))
        let head: [String: any Sendable] = ["number": 40, "hash": hash]
        let garbage = Base64.encodeToString([UInt8](repeating: 7, count: 300))
        cast.rewrite(cast.ada) { target, reply in
            if target.hasPrefix("/v1/vaults/\(name)/log") { reply["entries"] = [garbage] }
            guard target == "/v1/vaults", let listed = reply["vaults"] as? [[String: Any]] else { return }
            reply["vaults"] = listed.map { vault in
                guard vault["id"] as? String == name else { return vault }
                return vault.merging(["head": head]) { $1 }
            }
        }
        try await cast.ada.vault().collection("notes", of: Note.self).put(Note(text: "of the account"))
        try await cast.ada.notes(club.id).put(Note(text: "of the club"))
        _ = try? await cast.ada.vault().sync()
        #expect(try await cast.ada.vault().items().allSatisfy { !$0.isUnsent })
        #expect(try await cast.ada.vault().unsentCount(of: club.id) == 0)
        let member = try #require(try await cast.ada.vault().shared(club.id).members.first { !$0.isOwn })
        try await cast.ada.vault().shared(club.id).remove([member.id])
        #expect(cast.people.onServer(club.id)?.log.presentMembers.count == 1)
    }

    @Test func `a limit of rotations does not keep entries from being sealed`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Bob", cast.bob)
        try await cast.shared(cast.bob).leave()
        cast.people.vaults.withState { $0.rotations = 0 }
        try await cast.sync(cast.ada)
        cast.people.advance(4_000)
        try await cast.sync(cast.ada, cast.ada)
        #expect(cast.people.onServer(cast.id)?.log.unsealed.isEmpty == true)
        cast.people.vaults.withState { $0.rotations = nil }
        cast.people.advance(4_000)
        try await cast.sync(cast.ada)
        #expect(cast.people.onServer(cast.id)?.log.isRotationDue == false)
    }

    @Test func `a removed member comes back on a new device`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        try await cast.sync(cast.bob)
        let tablet = try await cast.people.person("bob")
        try await cast.sync(tablet)
        let back = try await cast.people.join(cast.shared(cast.ada), tablet.vault(), as: "Bob")
        #expect(back.role == .writer && back.problems.allSatisfy { !$0.stopsWriting })
        try await cast.write("of Bob", tablet)
        try await cast.sync(cast.ada)
        #expect(try await cast.texts(cast.ada) == ["of Bob"])
    }

    @Test func `a second device of a member that has not synced does not join again`() async throws {
        let cast = try await SharedVaultCast()
        let laptop = try await cast.people.person("bob")
        let first = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, role: .writer, code: .none)
        await #expect {
            try await laptop.vault().shared.join(first.link, code: nil, as: "Bob")
        } throws: {
            if case VaultError.shared(.alreadyMember) = $0 { true } else { false }
        }
        #expect(cast.people.onServer(cast.id)?.log.presentMembers.count == 3)
        try await cast.shared(cast.bob).leave()
        let tablet = try await cast.people.person("bob")
        let second = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, role: .writer, code: .none)
        let back = try await tablet.vault().shared.join(second.link, code: nil, as: "Bob")
        #expect(back.role == .writer)
    }

    @Test func `two devices of a person that join at once are one member`() async throws {
        let cast = try await SharedVaultCast()
        let phone = try await cast.people.person("carol")
        let laptop = try await cast.people.person("carol")
        let invitation = try await cast.shared(cast.ada).invite(
            base: SharedVaultPeople.base, role: .writer, uses: 2, code: .none)
        let other = try laptop.vault()
        phone.link.interrupt(
            LossyTransport.Interruption(exchange: 2, moment: .beforeReply) {
                _ = try? await other.shared.join(invitation.link, code: nil, as: "Carol")
            })
        _ = try? await phone.vault().shared.join(invitation.link, code: nil, as: "Carol")
        for _ in 0..<3 { try await cast.sync(phone, laptop, cast.ada) }
        #expect(cast.people.onServer(cast.id)?.log.presentMembers.count == 4)
        try await cast.write("of the phone", phone)
        try await cast.write("of the laptop", laptop)
        try await cast.sync(cast.ada)
        #expect(try await cast.texts(cast.ada) == ["of the phone", "of the laptop"])
    }
}
