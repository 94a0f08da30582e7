import Foundation
import Testing

@testable import SalternClient

/// Who was offline for long, or imports much, has many changes that were not sent.
///
/// `SALTERN_UNSENT_CHANGES` makes more of them, to see how long a fetch takes.
@Suite struct UnsentChangesTests {
    private static let count = max(Int(ProcessInfo.processInfo.environment["SALTERN_UNSENT_CHANGES"] ?? "") ?? 0, 300)

    @Test func `a fetch that brings no copy does not read them`() async throws {
        let person = try await RestoredPerson()
        let vault = try person.vault(0)
        let notes = vault.collection("notes", of: Note.self)
        let text = String(repeating: ".", count: 800)
        for number in 0..<Self.count { try await notes.put(Note(text: "\(number)" + text)) }
        // Of those that are sent first there are fewer.
        try await vault.damageChange(290)
        person.links[0].setAnswer { request in
            request.target == "/v1/items/batch"
                ? HTTPReply(head: HTTPReplyHead(status: 503, fields: []), body: []) : nil
        }
        for _ in 0..<3 {
            let start = ContinuousClock.now
            await #expect { try await vault.sync() } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            print("a round with \(Self.count) unsent changes: \(ContinuousClock.now - start)")
        }
        try await vault.repairChange(290)
        let start = ContinuousClock.now
        try await vault.readUnsent()
        print("all of them read: \(ContinuousClock.now - start)")
    }
}

extension Vault {
    /// Whoever reads the change fails.
    fileprivate func damageChange(_ sequence: Int64) throws {
        try store.database.execute("UPDATE changes SET id = x'00' WHERE sequence = ?", .integer(sequence))
    }

    fileprivate func repairChange(_ sequence: Int64) throws {
        try store.database.execute(
            "UPDATE changes SET id = ? WHERE sequence = ?", .blob(ItemID.random().bytes), .integer(sequence))
    }

    /// What a fetch does when a copy has come.
    fileprivate func readUnsent() throws {
        var report = SyncReport()
        let sealer = try engine.sealer
        try VersionCopies(SyncContext(store, sealing: { sealer })).forgetKeptElsewhere(into: &report)
    }
}
