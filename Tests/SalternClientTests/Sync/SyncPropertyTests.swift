import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// No edit is ever lost: three devices, random edits, offline periods, requests and replies that are lost, repeated or
/// late, edits within a sync, syncs that are cut off, devices and servers that start again.
///
/// A scenario is its seed. `SALTERN_SYNC_SCENARIOS` runs more of them, `SALTERN_SYNC_SEED` begins at another one.
@Suite struct SyncPropertyTests {
    private static let count = UInt64(ProcessInfo.processInfo.environment["SALTERN_SYNC_SCENARIOS"] ?? "") ?? 1_000
    private static let first = UInt64(ProcessInfo.processInfo.environment["SALTERN_SYNC_SEED"] ?? "") ?? 1
    /// Scenarios that use one account, one after another.
    private static let share: UInt64 = 10

    /// At once, each with a server of its own: they wait for the disk more than they work.
    private static let lanes: UInt64 = 3

    @Test(arguments: 0..<lanes)
    func `in the end all devices are equal and have every version that a person wrote`(lane: UInt64) async throws {
        try await LiveServer.with { server in
            let size = (Self.count + Self.lanes - 1) / Self.lanes
            let first = Self.first + lane * size
            let end = min(first + size, Self.first + Self.count)
            for start in stride(from: first, to: end, by: Int(Self.share)) {
                // Every second one fetches and sends little at a time, so that pages and batches follow one another.
                let isSmall = (start - first) / Self.share % 2 == 1
                let limits = isSmall ? SyncLimits(page: 5, batch: 5) : SyncLimits()
                let person = try await Person("person-\(start)@example.org", server, limits)
                for seed in start..<min(start + Self.share, end) {
                    do {
                        try await SyncScenario(seed, person, server).run()
                    } catch {
                        Issue.record("seed \(seed): \(error)")
                        // Where it stopped its devices are of no use to the next one.
                        break
                    }
                }
            }
        }
    }
}

/// A person with three devices.
final class Person {
    let devices: [Device]
    private(set) var vaults: [Vault?] = []

    init(_ userid: String, _ server: LiveServer, _ limits: SyncLimits = SyncLimits()) async throws {
        devices = try ["phone", "laptop", "tablet"].map { name in
            var device = try Device(name, server)
            device.settings.limits = limits
            return device
        }
        let password = Password("password")
        for device in devices {
            vaults.append(
                vaults.isEmpty
                    ? try await Vault.signUp(device.settings, userid: userid, password: password)
                    : try await Vault.logIn(device.settings, userid: userid, password: password))
        }
    }

    /// Ends the device's process and starts it again.
    func startAgain(_ index: Int) async throws {
        // Nothing else holds it.
        vaults[index] = nil
        vaults[index] = try await Vault.resume(devices[index].settings)
    }

    func vault(_ index: Int) throws -> Vault { try #require(vaults[index]) }
}
