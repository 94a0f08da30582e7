import Testing

@testable import SalternClient

/// Deletions that wait in a folder would be undone by whoever signs out: to the next vault its files are new.
@Suite struct FolderSignOutTests {
    private func expectHeld(_ vault: Vault) async {
        await #expect { try await vault.signOut() } throws: {
            if case VaultError.deletionsHeld = $0 { true } else { false }
        }
    }

    private func withPair(_ body: (FolderDevice, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            for number in 0..<12 { try phone.write("\(number)", to: "file \(number)") }
            try await phone.sync.run()
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await laptop.sync.run()
            try await body(phone, laptop)
        }
    }

    @Test func `those of files that are missing here`() async throws {
        try await withPair { phone, _ in
            for number in 0..<6 { try phone.remove("file \(number)") }
            #expect(try await phone.sync.run().held.there == 6)
            await expectHeld(phone.vault)
            try await phone.agreeing.run()
            let end = try await phone.vault.signOut()
            #expect(end == .ended)
        }
    }

    @Test func `those of files that were deleted elsewhere`() async throws {
        try await withPair { phone, laptop in
            for number in 0..<6 { try phone.remove("file \(number)") }
            try await phone.agreeing.run()
            // Who agrees for the vault has not agreed for the folder.
            try await laptop.vault.agreeToDeletions()
            #expect(try await laptop.sync.run().held.here == 6)
            await expectHeld(laptop.vault)
            let end = try await laptop.vault.signOut(forgettingHeldDeletions: true)
            #expect(end == .ended)
            #expect(laptop.files().count == 12)
        }
    }
}
