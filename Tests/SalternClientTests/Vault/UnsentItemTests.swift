import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What can never be sent is not kept, and what the server does not take can be given up.
@Suite struct UnsentItemTests {
    private let password = Password("password")

    private func withPhone(_ body: (Vault, Device, LiveServer) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            try await body(
                try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password), phone, server)
        }
    }

    private func bytes(_ count: Int) -> SecureBytes { SecureBytes(copying: [UInt8](repeating: 1, count: count)) }

    private func shortage(_ body: () async throws -> Void) async -> PlanShortage? {
        do { try await body() } catch VaultError.noRoom(let shortage) { return shortage } catch {
            Issue.record("\(error)")
        }
        return nil
    }

    @Test func `what is longer than the plan allows is refused at once, with numbers, and not kept`() async throws {
        try await withPhone { vault, _, server in
            let body = try #require(await shortage { _ = try await vault.body(holding: bytes(2_000_000)) })
            #expect((body.limit, body.free) == (.itemBytes, 1_048_576))
            #expect((2_000_000..<2_200_000).contains(body.needed))
            // The title counts, too.
            let fits = try await vault.body(holding: bytes(1_000_000))
            let title = String(repeating: "x", count: 100_000)
            let item = try #require(
                await shortage { try await vault.put(PlainItem(title: title, body: fits), .random(), in: "notes") })
            #expect(item.needed > 1_048_576)
            #expect(try await vault.unsentCount() == 0)
            // With another plan it is asked for before it is refused; without being asked, by the next sync.
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 1200000")
            _ = await shortage { try await vault.put(PlainItem(title: title, body: fits), .random(), in: "notes") }
            try await vault.sync()
            try await vault.put(PlainItem(title: title, body: fits), .random(), in: "notes")
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 3000000")
            let long = try await vault.body(holding: bytes(2_000_000))
            try await vault.put(PlainItem(body: long), .random(), in: "notes")
            #expect(try await vault.sync().unsent == 0)
        }
    }

    @Test func `without network what is usual is believed, but nothing that fits in no request`() async throws {
        try await withPhone { vault, device, _ in
            device.link.setUnreachable(true)
            _ = try await vault.body(holding: bytes(2_000_000))
            let shortage = await shortage { _ = try await vault.body(holding: bytes(7_000_000)) }
            #expect(shortage?.limit == .itemBytes)
            let item = PlainItem(body: bytes(7_000_000))
            let put = await self.shortage { try await vault.put(item, .random(), in: "notes") }
            #expect(put?.free == PlanRoom.itemByteLimit)
            #expect(try await vault.unsentCount() == 0)
        }
    }

    @Test func `the longest item that is taken fits in a batch`() async throws {
        try await withPhone { vault, _, server in
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 16777216")
            var count = Int(PlanRoom.itemByteLimit)
            while SealedBox.sealedCount(count) > Int(PlanRoom.itemByteLimit) { count -= 1_024 }
            try await vault.put(PlainItem(body: bytes(count)), .random(), in: String(repeating: "x", count: 32))
            #expect(try await vault.sync().unsent == 0)
        }
    }

    @Test func `what was written before anybody knew that it is too long is told once the plan is known`() async throws
    {
        try await withPhone { vault, device, server in
            device.link.setUnreachable(true)
            let (long, short) = (ItemID.random(), ItemID.random())
            try await vault.put(PlainItem(title: "long", body: bytes(2_000_000)), long, in: "notes")
            try await vault.put(PlainItem(title: "short", body: bytes(10)), short, in: "notes")
            #expect(try await vault.unsentItems().map(\.shortage) == [nil, nil])
            device.link.setUnreachable(false)
            let changes = vault.changes()
            #expect(try await vault.sync().unsent == 1)
            let item = try #require(try await vault.unsentItems().first)
            #expect(item.id == long)
            let shortage = try #require(item.shortage)
            #expect((shortage.limit, shortage.free) == (.itemBytes, 1_048_576))
            #expect(try await vault.summary(of: long)?.shortage == item.shortage)
            let listed = try await vault.items(in: "notes").filter { $0.shortage != nil }
            #expect(listed == [item])
            // Whoever was not told waits for what comes last.
            let last = try await vault.put(PlainItem(body: bytes(10)), .random(), in: "notes")
            var told: [Set<ItemID>] = []
            for await ids in changes {
                if ids == [last] { break }
                told.append(ids)
            }
            #expect(told.contains([long]))
            // With another plan it is another question.
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 3000000")
            #expect(try await vault.sync().unsent == 0)
            #expect(try await vault.summary(of: long)?.shortage == nil)
            #expect(try await vault.notices().isEmpty)
        }
    }

    @Test func `a change that the server does not take is listed, and can be given up`() async throws {
        try await withPhone { vault, device, server in
            let old = ItemID.random()
            let (new, gone) = (ItemID.random(), ItemID.random())
            for id in [old, gone] {
                try await vault.put(PlainItem(title: "old", body: bytes(10)), id, in: "notes")
            }
            try await vault.sync()
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 1")
            try await vault.put(PlainItem(title: "changed", body: bytes(5_000)), old, in: "notes")
            try await vault.put(PlainItem(title: "new", body: bytes(5_000)), new, in: "notes")
            device.link.setUnreachable(true)
            try await vault.delete(gone)
            device.link.setUnreachable(false)
            #expect(try await vault.unsentItems().map(\.id) == [old, new])
            #expect(try await vault.unsentItems(limit: 1).map(\.title) == ["changed"])
            try await vault.discardChange(gone)
            #expect(try await vault.item(gone)?.title == "old")
            #expect(try await vault.sync().unsent == 2)
            #expect(try await vault.notices().count == 2)
            for id in [old, new] { try await vault.discardChange(id) }
            #expect(try await vault.notices().isEmpty)
            #expect(try await vault.unsentCount() == 0)
            #expect(try await vault.item(old)?.title == "old")
            #expect(try await vault.item(new) == nil)
            #expect(try await vault.sync().unsent == 0)
            await #expect { try await vault.discardChange(old) } throws: {
                if case VaultError.notFound = $0 { true } else { false }
            }
            // Nothing is lost.
            let kept = try await vault.deletedItems()
            #expect(Set(kept.map(\.title)) == ["changed", "new"])
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 1048576")
            _ = try await vault.account()
            for item in kept { try await vault.restore(item.id) }
            #expect(try await vault.sync().unsent == 0)
            let titles = try await vault.items(in: "notes").compactMap(\.title)
            #expect(titles.sorted() == ["changed", "new", "old", "old"])
        }
    }
}
