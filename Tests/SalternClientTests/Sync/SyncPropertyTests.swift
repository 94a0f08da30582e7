import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// No edit is ever lost: three devices, random edits, offline periods, requests and replies that are lost, repeated or
/// late, streams that are cut, changes of the data keys, edits within a sync, syncs that are cut off, processes that are
/// killed at any call that writes, disks that fail, devices and servers that start again.
///
/// A scenario is its seed: see ``PropertyTests``.
/// ``KilledProcessTests`` kills processes in truth.
@Suite struct SyncPropertyTests {
    /// Scenarios that use one account, one after another.
    private static let share: UInt64 = 10

    /// At once, each with a server of its own: they wait for the disk more than they work.
    private static let lanes: UInt64 = 3

    @Test(arguments: 0..<lanes)
    func `in the end all devices are equal and have every version that a person wrote`(lane: UInt64) async throws {
        let seeds = PropertyTests.seeds(ofLane: lane, of: Self.lanes)
        print("seeds \(seeds)")
        var incidents = SyncScenario.Incidents()
        try await LiveServer.with { server in
            for start in stride(from: seeds.lowerBound, to: seeds.upperBound, by: Int(Self.share)) {
                // Every second one fetches and sends little at a time, so that pages and batches follow one another.
                let isSmall = (start - seeds.lowerBound) / Self.share % 2 == 1
                let limits = isSmall ? SyncLimits(page: 5, batch: 5) : SyncLimits()
                // The items are those of the account, or of a shared vault.
                let isShared = start / Self.share % 2 == 1
                let person = try await Person("person-\(start)@example.org", server, limits, isShared: isShared)
                for seed in start..<min(start + Self.share, seeds.upperBound) {
                    let scenario = SyncScenario(seed, person, server)
                    do {
                        try await scenario.run()
                    } catch {
                        Issue.record("seed \(seed): \(error)")
                        // Where it stopped its devices are of no use to the next one.
                        break
                    }
                    incidents.add(scenario.incidents)
                }
            }
        }
        print("seeds \(seeds): \(incidents)")
        if seeds.count > 100 { #expect(incidents.hasEverything) }
    }
}

/// A person with three devices.
final class Person {
    private(set) var devices: [Device]
    private(set) var vaults: [Vault?] = []
    let password = Password("password")

    /// The shared vault with the items; nil for items of the account.
    let shared: TestVault?

    init(
        _ userid: String, _ server: LiveServer, _ limits: SyncLimits = SyncLimits(), isShared: Bool = false
    ) async throws {
        shared = try await isShared ? TestVault("vault-of-\(userid)", server) : nil
        devices = try ["phone", "laptop", "tablet"].map { name in
            var device = try Device(name, server)
            device.settings.limits = limits
            try device.beginLife()
            return device
        }
        for device in devices {
            vaults.append(
                vaults.isEmpty
                    ? try await Vault.signUp(device.settings, userid: userid, password: password)
                    : try await Vault.logIn(device.settings, userid: userid, password: password))
            guard let shared else { continue }
            device.link.change(to: shared.routes(try CurlTransport(server.address())))
            await vaults.last??.join(shared, as: UInt8(vaults.count))
        }
    }

    deinit { for device in devices { device.endLives() } }

    /// Ends the device's process and starts it again.
    /// - Parameter fault: What happens meanwhile.
    func startAgain(_ index: Int, _ fault: (kind: WriteFault, call: Int)? = nil) async throws {
        if let fault { devices[index].life.arm(fault.kind, at: fault.call) }
        // Nothing else holds it.
        vaults[index] = nil
        try devices[index].beginLife()
        if let fault { devices[index].life.arm(fault.kind, at: fault.call) }
        while true {
            do {
                vaults[index] = try await Vault.resume(devices[index].settings)
                if let shared { await vaults[index]?.join(shared, as: UInt8(index + 1)) }
                if !devices[index].life.hasEnded { break }
            } catch VaultError.store where devices[index].life.hasFailed {
                // The next process opens it.
            }
            vaults[index] = nil
            try devices[index].beginLife()
        }
        _ = devices[index].life.disarm()
    }

    func vault(_ index: Int) throws -> Vault { try #require(vaults[index]) }
}
