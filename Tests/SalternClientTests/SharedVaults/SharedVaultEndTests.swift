import Foundation
import Testing

@testable import SalternClient

/// The end of a membership on several devices of an account. No device loses edits that it has not sent.
@Suite struct SharedVaultEndTests {
    /// Bob's second device, with all items.
    private func tablet(_ cast: SharedVaultCast) async throws -> PersonDevice {
        let tablet = try await cast.people.person("bob")
        try await cast.sync(tablet)
        return tablet
    }

    @Test func `a vault that another device forgets stays while this device has unsent edits`() async throws {
        let cast = try await SharedVaultCast()
        let tablet = try await tablet(cast)
        try await cast.write("sent", cast.bob)
        try await cast.sync(tablet)
        try await tablet.notes(cast.id).put(Note(text: "draft"))
        try await cast.shared(cast.bob).leave()
        try await cast.shared(cast.bob).forget()
        try await cast.sync(cast.bob, tablet)
        let kept = try await cast.shared(tablet)
        #expect(kept.role == nil && kept.problems.contains(.ended))
        #expect(try await cast.texts(tablet) == ["sent", "draft"])
        #expect(try await kept.unsentCount() == 1)
        // Also after further rounds of both.
        try await cast.sync(cast.bob, tablet, cast.bob)
        #expect(try await cast.texts(tablet) == ["sent", "draft"])
        #expect(try await cast.bob.vault().shared.all().isEmpty)
        await #expect { try await kept.forget() } throws: { ($0 as? VaultError).map(\.isUnsentEdits) ?? false }
        try await kept.forget(evenAsMember: true)
        try await cast.sync(tablet, cast.bob)
        #expect(try await tablet.vault().shared.all().isEmpty)
    }

    @Test func `a vault that another device forgets goes from a device that has sent its edits`() async throws {
        let cast = try await SharedVaultCast()
        let tablet = try await tablet(cast)
        try await cast.write("sent", tablet)
        try await cast.shared(cast.bob).leave()
        try await cast.shared(cast.bob).forget()
        try await cast.sync(cast.bob, tablet)
        #expect(try await tablet.vault().shared.all().isEmpty)
    }

    @Test func `a vault that its owner deletes stays on the owner's device with unsent edits`() async throws {
        let cast = try await SharedVaultCast()
        let laptop = try await cast.people.person("ada")
        try await cast.sync(laptop)
        try await laptop.notes(cast.id).put(Note(text: "draft"))
        try await cast.shared(cast.ada).delete()
        try await cast.sync(cast.ada, laptop)
        #expect(try await cast.texts(laptop) == ["draft"])
        #expect(try await !cast.shared(laptop).isOwner)
    }

    @Test(arguments: [false, true])
    func `a device whose keys another device has replaced before the end still reads everything`(forgets: Bool)
        async throws
    {
        let cast = try await SharedVaultCast()
        let tablet = try await tablet(cast)
        try await cast.write("sent", cast.bob)
        for _ in 0..<2 { try await cast.shared(cast.ada).rotate() }
        cast.people.advance(120)
        try await cast.sync(cast.bob, tablet)
        try await tablet.notes(cast.id).put(Note(text: "draft"))
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.ada, cast.bob)
        try await cast.shared(cast.bob).leave()
        if forgets { try await cast.shared(cast.bob).forget() }
        for _ in 0..<2 {
            try await cast.sync(cast.bob, tablet)
            #expect(try await cast.texts(tablet) == ["sent", "draft"])
            #expect(try await cast.shared(tablet).unsentCount() == 1)
        }
        if !forgets { #expect(try await cast.texts(cast.bob) == ["sent"]) }
    }

    @Test func `a device joins again after another one has left, also before its next sync`() async throws {
        let cast = try await SharedVaultCast()
        let tablet = try await tablet(cast)
        try await cast.write("sent", tablet)
        try await tablet.notes(cast.id).put(Note(text: "draft"))
        try await cast.shared(cast.bob).leave()
        let link = try await cast.shared(cast.ada).invite(
            base: SharedVaultPeople.base, role: .writer, code: .none
        ).link
        #expect(try await tablet.vault().shared.join(link, code: nil, as: "Bob").role == .writer)
        try await cast.sync(tablet, cast.ada, cast.bob)
        for device in [tablet, cast.ada, cast.bob] { #expect(try await cast.texts(device) == ["sent", "draft"]) }
    }

    @Test func `a former owner that was removed deletes nothing`() async throws {
        let cast = try await SharedVaultCast(bob: .manager)
        try await cast.write("Ada's", cast.ada)
        try await cast.shared(cast.ada).handOver(to: cast.member(cast.bob))
        try await cast.sync(cast.bob)
        try await cast.shared(cast.bob).acceptHandOver()
        try await cast.shared(cast.bob).remove([cast.member(cast.ada)])
        let former = try await cast.shared(cast.ada)
        await #expect { try await former.delete() } throws: { $0.isShared(.notPermitted) }
        #expect(try await cast.texts(cast.ada) == ["Ada's"])
        #expect(try await cast.shared(cast.ada).problems.contains(.ended))
        _ = try? await cast.ada.vault().sync()
        await #expect { try await former.delete() } throws: { $0.isShared(.notPermitted) }
        #expect(try await cast.texts(cast.ada) == ["Ada's"])
    }

    @Test func `a rejected deletion does not make a later one count as done`() async throws {
        let cast = try await SharedVaultCast(bob: .manager)
        try await cast.write("Ada's", cast.ada)
        let laptop = try await cast.people.person("ada")
        try await cast.sync(laptop)
        try await cast.shared(cast.ada).handOver(to: cast.member(cast.bob))
        try await cast.sync(cast.bob)
        try await cast.shared(cast.bob).acceptHandOver()
        // The laptop has not heard of the new owner.
        let former = try await cast.shared(laptop)
        await #expect { try await former.delete() } throws: { $0.isShared(.notPermitted) }
        try await cast.shared(cast.bob).remove([cast.member(cast.ada)])
        await #expect { try await former.delete() } throws: { $0.isShared(.notPermitted) }
        #expect(try await cast.texts(laptop) == ["Ada's"])
    }

    @Test func `a deletion without a reply can be repeated`() async throws {
        let cast = try await SharedVaultCast()
        let shared = try await cast.shared(cast.ada)
        cast.ada.link.setFate { .losesReply }
        await #expect(throws: VaultError.self) { try await shared.delete() }
        cast.ada.link.setFate { .passes }
        try await cast.shared(cast.ada).delete()
        #expect(try await cast.ada.vault().shared.all().isEmpty)
    }

    @Test func `two devices of an account leave one after the other`() async throws {
        let cast = try await SharedVaultCast()
        let tablet = try await tablet(cast)
        let shared = try await cast.shared(tablet)
        try await cast.shared(cast.bob).leave()
        try await shared.leave()
        #expect(try await cast.shared(tablet).role == nil)
    }
}

extension VaultError {
    fileprivate var isUnsentEdits: Bool {
        if case .unsentEdits = self { true } else { false }
    }
}
