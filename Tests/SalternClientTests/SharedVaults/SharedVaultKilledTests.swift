import Foundation
import SalternTesting
import Testing
import VaultLog

@testable import SalternClient

/// A process that ends before a request or before its reply, in each call that changes a vault or its members. After a
/// restart, two syncs and the repeated call, the vault is as after one call.
@Suite struct SharedVaultKilledTests {
    @Test(arguments: KilledCall.allCases)
    func `a call that ends at any request can be repeated`(call: KilledCall) async throws {
        for (index, moment) in LossyTransport.Moment.allCases.enumerated() {
            var reached = 0
            // Without many seeds, every fourth request, in both moments and in all calls another one.
            let step = PropertyTests.stride == 1 ? 1 : 4
            let number = KilledCall.allCases.firstIndex(of: call) ?? 0
            let first = (2 * index + number + Int(PropertyTests.first)) % step
            for exchange in stride(from: first, to: 80, by: step) {
                let scene = try await KilledScene(call)
                scene.actor.kill(inExchange: exchange, moment)
                try? await scene.perform()
                let place = "\(call), \(moment), exchange \(exchange)"
                guard try await scene.actor.startAgainIfEnded() else {
                    try await scene.check(place)
                    break
                }
                reached += 1
                do {
                    try await scene.complete()
                    try await scene.check(place)
                } catch {
                    Issue.record("\(place): \(error)")
                }
            }
            // Each call sends a request, and most of them sync first.
            #expect(reached > 0 || first > 0, "\(call), \(moment)")
        }
    }
}

/// A call that changes a vault or its members.
enum KilledCall: String, CaseIterable, Sendable {
    case make, invite, join, remove, lower, raise, rotate, leave, handOver, acceptHandOver, delete, replaceKeys
}

/// Ada owns a vault, Bob is a manager, Eve is a writer or has an invitation. One of them makes the call.
private final class KilledScene {
    let call: KilledCall
    let people = SharedVaultPeople()
    let ada: PersonDevice
    let bob: PersonDevice
    let eve: PersonDevice
    private var id = SharedVaultID.random()
    private var link = ""
    private var made: SharedVaultID?
    private var invitation: NewInvitation?
    private var generations = 0
    /// The members at the beginning, by name.
    private var members: [String: SalternClient.MemberID] = [:]
    private let (first, second) = (ItemID.random(), ItemID.random())

    var actor: PersonDevice {
        switch call {
        case .join: eve
        case .leave, .acceptHandOver, .replaceKeys: bob
        default: ada
        }
    }

    init(_ call: KilledCall) async throws {
        self.call = call
        ada = try await people.person("ada")
        bob = try await people.person("bob")
        eve = try await people.person("eve")
        guard call != .make else { return }
        let family = try await ada.vault().shared.make(name: "Family", as: "Ada")
        id = family.id
        try await people.join(family, bob.vault(), as: "Bob", role: .manager)
        if call == .join {
            link = try await family.invite(base: SharedVaultPeople.base, role: .writer, code: .none).link
        } else {
            try await people.join(family, eve.vault(), as: "Eve", role: call == .raise ? .reader : .writer)
        }
        try await ada.vault().sync()
        try await ada.notes(id).put(Note(text: "of Ada"), first)
        let writer = call == .join || call == .raise ? bob : eve
        try await writer.vault().sync()
        try await writer.notes(id).put(Note(text: "of another member"), second)
        try await writer.vault().sync()
        for device in [ada, bob, eve] { try await device.vault().sync() }
        for member in try await ada.vault().shared(id).members { members[member.name ?? ""] = member.id }
        if call == .acceptHandOver {
            try await family.handOver(to: try member("Bob"))
            try await bob.vault().sync()
        }
        generations = people.onServer(id)?.log.generations.count ?? 0
    }

    private func member(_ name: String) throws -> SalternClient.MemberID { try #require(members[name]) }

    /// Makes the call.
    func perform() async throws {
        let vault = try actor.vault()
        switch call {
        case .make: made = try await vault.shared.make(name: "Family", as: "Ada").id
        case .invite:
            invitation = try await vault.shared(id).invite(base: SharedVaultPeople.base, role: .writer, code: .none)
        case .join: _ = try await vault.shared.join(link, code: nil, as: "Eve")
        case .remove: try await vault.shared(id).remove([member("Eve")])
        case .lower: try await vault.shared(id).setRole(member("Eve"), to: .reader)
        case .raise: try await vault.shared(id).setRole(member("Eve"), to: .writer)
        case .rotate: try await vault.shared(id).rotate()
        case .leave: try await vault.shared(id).leave()
        case .handOver: try await vault.shared(id).handOver(to: member("Bob"))
        case .acceptHandOver: try await vault.shared(id).acceptHandOver()
        case .delete: try await vault.shared(id).delete()
        case .replaceKeys:
            // The server needs the password, which a new process does not have.
            try await vault.lock()
            try await vault.unlock(SharedVaultPeople.password)
            try await vault.replaceVaultKeys()
        }
    }

    /// Syncs twice, and makes the call once more if it is not done.
    func complete() async throws {
        for _ in 0..<2 { try await actor.vault().sync() }
        guard try await !isDone() else { return }
        do { try await perform() } catch VaultError.shared(.alreadyMember) where call == .join {}
    }

    private func isDone() async throws -> Bool {
        let vault = try actor.vault()
        let shared = try await vault.shared.vault(id)
        switch call {
        case .make:
            made = try await vault.shared.all().first?.id
            return made != nil
        case .join: return shared?.role != nil
        case .rotate: return people.onServer(id).map { $0.log.generations.count > generations } ?? false
        case .leave: return shared?.role == nil
        case .acceptHandOver: return shared?.isOwner ?? false
        case .delete: return shared == nil
        // A repeated call is part of the contract.
        case .invite, .remove, .lower, .raise, .handOver, .replaceKeys: return false
        }
    }

    // MARK: Checks

    func check(_ place: String) async throws {
        let devices = [ada, bob, eve]
        // Another manager's device seals after a minute, and rotates.
        for _ in 0..<3 {
            for device in devices { try await device.vault().sync() }
            people.advance(120)
        }
        let id = made ?? id
        guard call != .delete else {
            #expect(people.onServer(id) == nil && people.vaults.withState { $0.vaults.isEmpty }, "\(place)")
            #expect(try await ada.vault().shared.all().isEmpty, "\(place)")
            #expect(try await bob.vault().shared(id).problems.contains(.ended), "\(place)")
            return
        }
        let server = try #require(people.onServer(id), "\(place)")
        #expect(people.vaults.withState { $0.vaults.count } == 1, "\(place): founded twice")
        checkCall(server, place)
        #expect(server.log.unsealed.isEmpty && !server.log.isRotationDue, "\(place)")
        let fresh = try await people.person("ada")
        try await fresh.vault().sync()
        for device in [ada, bob, eve, fresh] where server.member(device.account) != nil {
            try await checkMember(device, id, server, place)
        }
        if call != .make {
            #expect(try await fresh.texts(id) == [first: "of Ada", second: "of another member"], "\(place)")
        }
    }

    private func checkMember(
        _ device: PersonDevice, _ id: SharedVaultID, _ server: MemoryVaults.Vault, _ place: String
    ) async throws {
        let vault = try device.vault()
        let shared = try await vault.shared(id)
        #expect(shared.problems.isEmpty, "\(place), \(device.name): \(shared.problems)")
        #expect(shared.entryCount == server.entries.count, "\(place), \(device.name)")
        #expect(try await vault.unsentCount(of: id) == 0, "\(place), \(device.name)")
        #expect(try await vault.key(id) != nil, "\(place), \(device.name)")
        #expect(try await device.texts(id) == ada.texts(id), "\(place), \(device.name)")
    }

    private func checkCall(_ server: MemoryVaults.Vault, _ place: String) {
        let names = [ada, bob, eve].filter { server.member($0.account) != nil }.map(\.name)
        let added = server.log.generations.count - generations
        let role = server.member(eve.account)?.role
        switch call {
        case .make: #expect(names == ["ada"], "\(place)")
        case .remove: #expect(names == ["ada", "bob"] && added == 1, "\(place): \(added) generations")
        case .leave: #expect(names == ["ada", "eve"] && added == 1, "\(place): \(added) generations")
        case .rotate: #expect(names.count == 3 && added == 1, "\(place): \(added) generations")
        case .lower: #expect(role == .reader && added == 0, "\(place)")
        case .raise: #expect(role == .writer && added == 0, "\(place)")
        case .join: #expect(role == .writer && server.log.presentMembers.count == 3, "\(place)")
        case .acceptHandOver: #expect(server.log.owner == server.member(bob.account)?.id, "\(place)")
        case .handOver: #expect(server.log.offer?.to == server.member(bob.account)?.id, "\(place)")
        case .replaceKeys: #expect(names.count == 3 && added >= 1, "\(place)")
        case .invite: #expect(invitation != nil && !server.log.openInvitations.isEmpty, "\(place)")
        case .delete: break
        }
    }
}
