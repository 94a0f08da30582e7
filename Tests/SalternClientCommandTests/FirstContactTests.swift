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
        let place = FirstContact.Place(name: ada, profile: Self.profile, profiles: profiles, known: nil)
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

    @Test func `a log-in keeps changes of the profile by another process`() throws {
        let directory = try TemporaryDirectory()
        let ada = try AccountName("ada")
        let profiles = try ProfileStore(["HOME": directory.path])
        var mine = Self.profile
        mine.deviceName = "tablet"
        let place = FirstContact.Place(name: ada, profile: mine, profiles: profiles, known: Self.profile)
        var stored = Self.profile
        stored.server = "https://localhost:2"
        stored.publishedPins = ["sha256//x"]
        try profiles.save(stored, ada)
        stored.deviceName = "tablet"
        #expect(try place.present() == stored)
        profiles.remove(ada)
        #expect(try place.present() == mine)
    }

    @Test func `a command uses the profile of the moment at which it has the store`() async throws {
        let directory = try TemporaryDirectory()
        let ada = try AccountName("ada")
        let console = Console(environment: ["HOME": directory.path], output: .nullDevice)
        let profiles = try ProfileStore(console.environment)
        try profiles.save(Self.profile, ada)
        let folder = profiles.folder(ada)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var ticket = StoreTicket(in: folder)
        #expect(ticket != nil)
        let opening = Task {
            var arguments = try Arguments([], OptionNames())
            _ = try await AccountOption(&arguments).open(console)
        }
        let queue = folder.appending(path: "queue").path
        try await eventually { try FileManager.default.contentsOfDirectory(atPath: queue).count == 2 }
        var stored = Self.profile
        stored.server = "no address"
        try profiles.save(stored, ada)
        #expect(ticket?.isFirst == true)
        ticket = nil
        // With the former profile, it opens the store and finds no account.
        await #expect(throws: TransportError.self) { try await opening.value }
    }
}

extension ProfileStore {
    fileprivate func hasFolder(_ name: AccountName) -> Bool {
        FileManager.default.fileExists(atPath: folder(name).path)
    }
}
