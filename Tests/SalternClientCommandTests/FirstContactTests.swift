import CommandLineKit
import Foundation
import SalternClient
import SalternTesting
import Testing

@testable import saltern_client

@Suite struct FirstContactTests {
    private static let profile = AccountProfile(
        server: "https://localhost:1", userid: "ada@example.org", pins: [], certificate: nil,
        saltPrefix: "com.example:", deviceName: "phone")

    /// Events of two log-ins.
    private actor Events {
        private(set) var secondHasStore = false
        private(set) var firstHasEnded = false

        func enterSecond() { secondHasStore = true }
        func endFirst() { firstHasEnded = true }
    }

    @Test func `a failed first log-in leaves the store of a simultaneous one`() async throws {
        let directory = try TemporaryDirectory()
        let ada = try AccountName("ada")
        let profiles = try ProfileStore(["HOME": directory.path])
        let place = FirstContact.Place(name: ada, profile: Self.profile, profiles: profiles, isRenamed: false)
        let events = Events()
        var second: Task<Void, any Error>?
        await #expect(throws: VaultError.self) {
            _ = try await place.arrive { settings in
                _ = try await Vault.resume(settings)
                second = Task {
                    _ = try await place.arrive { settings in
                        _ = try await Vault.resume(settings)
                        await events.enterSecond()
                        try await eventually { await events.firstHasEnded }
                        #expect(profiles.hasFolder(ada))
                        throw VaultError.wrongCredentials
                    }
                }
                // The other log-in has the store only after this one.
                try? await eventually(within: .seconds(1)) { await events.secondHasStore }
                throw VaultError.wrongCredentials
            }
        }
        await events.endFirst()
        await #expect(throws: VaultError.self) { try await second?.value }
        #expect(await events.secondHasStore)
        #expect(!profiles.hasFolder(ada))
        #expect(try profiles.profile(ada) == nil)
    }
}

extension ProfileStore {
    fileprivate func hasFolder(_ name: AccountName) -> Bool { FileManager.default.fileExists(atPath: folder(name).path) }
}
