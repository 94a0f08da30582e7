import Cryptography
import Foundation
import SalternTesting
import Testing
import VaultLog

@testable import SalternClient

/// One run with random steps.
final class SharedVaultScenario {
    /// A text that a person has written, and that nobody has replaced or deleted who could see it.
    private struct Leaf {
        var author: String
        /// The number of times that the author had lost the right to write; nil for an author without it.
        var losses: Int?
        var step: Int
    }

    private let people = SharedVaultPeople()
    private var random: SeededGenerator
    private let seed: UInt64
    private let id: SharedVaultID
    /// Two devices of the owner, and one of each other person.
    private let devices: [PersonDevice]
    private(set) var reached = ReachedStates()
    private var backup: MemoryVaults.Backup?
    private var count = 0
    private var leaves: [String: Leaf] = [:]
    /// Texts that no member was permitted to write, with their sealing.
    private var forged: [String: VaultSealing] = [:]
    private var losses: [String: Int] = [:]
    private var writers: Set<String> = []
    /// The step at which a person was a member last, for those that are none.
    private var absentSince: [String: Int] = [:]
    /// Seals with keys and roles of the past, as a former member can.
    private var stolen: [VaultSealing] = []

    init(seed: UInt64) async throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        let phone = try await people.person("ada")
        id = try await phone.vault().shared.make(name: "Family", as: "Ada").id
        try await phone.vault().sync()
        devices = [
            phone, try await people.person("ada"), try await people.person("bob"), try await people.person("eve"),
        ]
        writers = ["ada"]
        absentSince = ["bob": 0, "eve": 0]
        if random.chance(oneIn: 3) { backup = people.vaults.backUp() }
        let family = try await phone.vault().shared(id)
        for device in devices.dropFirst(2) where random.chance(0.8) {
            let role: SharedRole = [.reader, .writer, .manager].randomElement(using: &random) ?? .reader
            try await people.join(family, device.vault(), as: device.name, role: role)
        }
        noteMembers()
        for device in devices { disturb(device) }
    }

    private func disturb(_ device: PersonDevice) {
        let random = Locked(SeededGenerator(seed: random.next()))
        device.link.setFate {
            random.withLock { random in
                switch Int.random(in: 0..<16, using: &random) {
                case 0: .losesRequest
                case 1, 2: .losesReply
                case 3: .repeats
                default: .passes
                }
            }
        }
        device.link.setRewrite { $1 }
    }

    private func quieten(_ device: PersonDevice) {
        device.link.setFate { .passes }
        device.link.setRewrite { $1 }
    }

    private var server: MemoryVaults.Vault? { people.onServer(id) }

    // MARK: Steps

    /// One act of one device. Many fail, because the connection, the role or the end of the process do not permit them.
    func step() async throws {
        count += 1
        let device = devices[Int.random(in: 0..<devices.count, using: &random)]
        let generations = server?.log.generations.count ?? 0
        if random.chance(oneIn: 6) {
            device.kill(
                inExchange: .random(in: 0..<10, using: &random), random.chance(0.5) ? .beforeRequest : .beforeReply)
        } else if random.chance(oneIn: 10) {
            device.kill(
                [.killBefore, .killWithin, .killAfter][Int.random(in: 0..<3, using: &random)],
                atCall: .random(in: 1..<60, using: &random))
            reached.note(.endsOfStores)
        }
        try await act(device)
        if try await device.startAgainIfEnded() { reached.note(.ends) }
        if (server?.log.generations.count ?? 0) > generations {
            reached.note(.rotations)
            for other in devices where other !== device {
                reached.note(.unsentAcrossRotation, (try? await other.vault().unsentCount(of: id)) ?? 0)
            }
        }
        noteMembers()
        if random.chance(oneIn: 4) { try await steal(devices[Int.random(in: 2..<4, using: &random)]) }
    }

    /// A vault that is still in use keeps the next process of its device from starting, so each act ends its use.
    private func act(_ device: PersonDevice) async throws {
        guard (try? device.vault()) != nil else { return }
        switch Int.random(in: 0..<30, using: &random) {
        case 0, 1, 2: await invite(device)
        case 3, 20:
            let shared = await shared(device)
            if let member = other(in: shared) { try? await shared?.remove([member]) }
        case 4, 21:
            let shared = await shared(device)
            let role: SharedRole = [.reader, .reader, .writer, .manager].randomElement(using: &random) ?? .reader
            if let member = other(in: shared) { try? await shared?.setRole(member, to: role) }
        case 5: try? await shared(device)?.rotate()
        case 6: if device.name != "ada" { try? await shared(device)?.leave() }
        case 7: if backup == nil { backup = people.vaults.backUp() }
        case 8: if random.chance(oneIn: 2) { try await restore() }
        case 9, 10, 22, 23: try await lie(to: device)
        case 11: try await delete(device)
        case 12: people.advance(TimeInterval(Int.random(in: 1..<4_000, using: &random)))
        case 13, 14, 15, 16, 17, 18, 19: try await write(device)
        default: _ = try? await device.vault().sync()
        }
    }

    private func shared(_ device: PersonDevice) async -> SharedVault? { try? await device.vault().shared(id) }

    private func invite(_ device: PersonDevice) async {
        let joiner = devices[Int.random(in: 2..<devices.count, using: &random)]
        let role: SharedRole = [.reader, .writer, .writer, .manager].randomElement(using: &random) ?? .reader
        let base = SharedVaultPeople.base
        guard let invitation = try? await shared(device)?.invite(base: base, role: role, code: .none) else { return }
        // A person tries more than once.
        for _ in 0..<3 {
            _ = try? await joiner.startAgainIfEnded()
            guard (try? await joiner.vault().shared.join(invitation.link, code: nil, as: joiner.name)) == nil else {
                return
            }
        }
    }

    private func other(in shared: SharedVault?) -> SalternClient.MemberID? {
        shared?.members.filter { !$0.isOwn && !$0.isOwner }.randomElement(using: &random)?.id
    }

    /// A person writes a new note, or over one that it sees.
    private func write(_ device: PersonDevice) async throws {
        guard let seen = try? await device.texts(id) else { return }
        let old = random.chance(0.5) ? seen.sorted { $0.value < $1.value }.randomElement(using: &random) : nil
        let text = "seed \(seed), step \(count), \(device.name)"
        let item = old?.key ?? .random(using: &random)
        let isDone = (try? await device.notes(id).put(Note(text: text), item)) != nil
        let present = try await presentTexts(device)
        guard isDone || present.values.contains(text) else { return }
        if let old { leaves[old.value] = nil }
        // The author may not have learned yet that it has lost the right.
        let right = writers.contains(device.name) ? losses[device.name] ?? 0 : nil
        leaves[text] = Leaf(author: device.name, losses: right, step: count)
    }

    private func delete(_ device: PersonDevice) async throws {
        guard let seen = try? await device.texts(id),
            let old = seen.sorted(by: { $0.value < $1.value }).randomElement(using: &random)
        else { return }
        let isDone = (try? await device.notes(id).delete(old.key)) != nil
        let present = try await presentTexts(device)
        guard isDone || present[old.key] == nil else { return }
        leaves[old.value] = nil
        reached.note(.deletions)
    }

    /// The texts that a device shows, in another process if the former one has ended.
    private func presentTexts(_ device: PersonDevice) async throws -> [ItemID: String] {
        if try await device.startAgainIfEnded() { reached.note(.ends) }
        return try await device.texts(id)
    }

    /// The database goes back. The owner's devices have synced since the backup, so no entry is lost.
    private func restore() async throws {
        guard let backup else { return }
        for device in devices where device.name == "ada" {
            try await device.startAgainIfEnded()
            quieten(device)
            for _ in 0..<2 { _ = try? await device.vault().sync() }
        }
        let isKnown = try await devices[0].vault().shared(id).entryCount == server?.entries.count
        for device in devices where device.name == "ada" { disturb(device) }
        guard isKnown else { return }
        people.vaults.restore(backup)
        self.backup = nil
        reached.note(.restores)
    }

    // MARK: Lies

    private func lie(to device: PersonDevice) async throws {
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            // The only copy of a key would be lost with the box.
            guard try await hasKey(of: server) else { return }
            let account = device.account
            people.change(id) { vault in
                guard let member = vault.member(account), vault.boxes[member.id] != nil else { return }
                vault.boxes[member.id] = String(repeating: "A", count: 152)
            }
            reached.note(.garbageBoxes)
        case 1:
            rewriteOnce(device, "/log", .garbagePreviousKeys) { reply in
                guard let keys = reply["previousKeys"] as? [[String: Any]], !keys.isEmpty else { return false }
                reply["previousKeys"] = keys.map { $0.merging(["key": String(repeating: "A", count: 80)]) { $1 } }
                return true
            }
        case 2:
            guard let server, server.entries.count > 2 else { return }
            let earlier = server.entries[server.entries.count - 2]
            let (number, hash) = (Int(earlier.number.value), Base64.encodeToString(earlier.hash.bytes))
            rewriteOnce(device, "/v1/vaults", .earlierHeads) { reply in
                guard let listed = reply["vaults"] as? [[String: Any]], !listed.isEmpty else { return false }
                reply["vaults"] = listed.map { $0.merging(["head": ["number": number, "hash": hash]]) { $1 } }
                return true
            }
        case 3, 6, 7: try await forge()
        case 4:
            rewriteOnce(device, "/log", .cutPages) { reply in
                guard reply["more"] as? Bool == true else { return false }
                reply["more"] = false
                return true
            }
        default:
            rewriteOnce(device, "/v1/vaults", .omissions) { reply in
                guard let listed = reply["vaults"] as? [Any], !listed.isEmpty else { return false }
                reply["vaults"] = [Any]()
                return true
            }
        }
    }

    /// True when a manager's device has the present key, so that it can make boxes again.
    private func hasKey(of server: MemoryVaults.Vault?) async throws -> Bool {
        for device in devices {
            guard let server, let member = server.member(device.account), server.role(of: member) == .manager,
                let key = try? await device.vault().key(id)
            else { continue }
            if server.log.currentGeneration.describes(key) { return true }
        }
        return false
    }

    /// Changes the next fitting reply to a device.
    private func rewriteOnce(
        _ device: PersonDevice, _ path: String, _ state: ReachedStates.State,
        _ body: @escaping @Sendable (inout [String: Any]) -> Bool
    ) {
        let isDone = Locked(false)
        device.link.setRewrite { request, reply in
            guard request.method == .get, request.target.contains(path), reply.head.status == 200,
                !isDone.withLock(\.self),
                var members = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any],
                body(&members), let bytes = try? JSONSerialization.data(withJSONObject: members)
            else { return reply }
            isDone.withLock { $0 = true }
            return HTTPReply(head: reply.head, body: [UInt8](bytes))
        }
        reached.note(state)
    }

    /// Somebody keeps the keys of a device.
    private func steal(_ device: PersonDevice) async throws {
        guard device.name != "ada", let vault = try? device.vault(), let state = try? await vault.vaultState(id),
            let signer = try? state.signer
        else { return }
        stolen.append(
            VaultSealing(
                id: id, log: state.log, keys: state.keys, signer: signer, role: .writer, evidence: JudgingEvidence(),
                refused: [], isStopped: false,
                lists: SealLists([]), names: [:]))
    }

    /// The server stores an edit by a reader, or by a former member under a head of the time before.
    private func forge() async throws {
        guard let sealing = stolen.filter(isForbidden).randomElement(using: &random)
        else { return }
        guard let signer = sealing.signer, let server else { return }
        let head = sealing.log.head.number
        let member = server.log.members[signer.member]
        let wasReader = !(member?.role(at: head)?.writes ?? false)
        let text = "seed \(seed), step \(count), forged"
        let item = ItemID.random()
        guard
            let content = try? sealing.seal(
                PlainItem(body: SecureBytes(copying: Array(#"{"text":"\#(text)"}"#.utf8))), item, collection: "notes",
                .first)
        else { return }
        try await people.put(content, item, id)
        forged[text] = sealing
        reached.note(wasReader ? .forgedByReader : .forgedAfterRemoval)
    }

    /// True for keys with which nobody may write any more, at the head that they name. Until a manager has sealed, no
    /// device can distinguish an edit after the cut from an edit before it.
    private func isForbidden(_ sealing: VaultSealing) -> Bool {
        // A restored log lacks entries that give rights.
        guard let signer = sealing.signer, let server, !server.isRecovering else { return false }
        let head = sealing.log.head.number
        guard server.log.members[signer.member]?.role(at: head)?.writes ?? false else { return true }
        return server.log.cut(of: signer.member, at: head) != nil && !server.log.unsealed.contains(signer.member)
    }

    private func isUnsealed(_ sealing: VaultSealing) -> Bool {
        sealing.signer.map { server?.log.unsealed.contains($0.member) ?? false } ?? false
    }

    // MARK: Members

    /// Notes the members of the server's log.
    private func noteMembers() {
        guard let server else { return }
        // A member that may write again with its present keys was permitted to write everything before.
        if !server.isRecovering { forged = forged.filter { isForbidden($0.value) || isUnsealed($0.value) } }
        for name in Set(devices.map(\.name)) {
            guard let device = devices.first(where: { $0.name == name }) else { continue }
            let member = server.member(device.account)
            if member != nil {
                if absentSince[name] != nil { reached.note(absentSince[name] == 0 ? .joins : .returns) }
                absentSince[name] = nil
            } else if absentSince[name] == nil {
                absentSince[name] = count
            }
            if member?.role?.writes ?? false {
                writers.insert(name)
            } else if writers.remove(name) != nil {
                losses[name, default: 0] += 1
            }
        }
    }

    // MARK: The end

    /// The connection is good, the server is honest, and every device syncs until nothing moves. Managers' devices seal
    /// after a minute and rotate after an hour.
    func calm() async throws {
        for device in devices {
            quieten(device)
            try await device.startAgainIfEnded()
        }
        for _ in 0..<8 {
            for device in devices { _ = try? await device.vault().sync() }
            people.advance(3_700)
        }
        noteMembers()
    }

    func check() async throws {
        let server = try #require(server)
        count(server)
        let owner = devices[0]
        let expected = try await owner.texts(id)
        for device in devices {
            let place: Comment = "seed \(seed), \(device.name)"
            if server.member(device.account) != nil {
                try await checkMember(device, server, expected, place)
            } else {
                try await checkFormer(device, server, place)
            }
        }
        try await checkLeaves(expected)
        #expect(Set(forged.keys).isDisjoint(with: expected.values), "seed \(seed)")
    }

    private func checkMember(
        _ device: PersonDevice, _ server: MemoryVaults.Vault, _ expected: [ItemID: String], _ place: Comment
    ) async throws {
        let vault = try device.vault()
        do { try await vault.sync() } catch { Issue.record("\(place): the last sync throws \(error)") }
        let shared = try await vault.shared(id)
        #expect(shared.problems.allSatisfy { !$0.stopsWriting }, "\(place): \(shared.problems)")
        #expect(shared.entryCount == server.entries.count, place)
        #expect(try await vault.key(id).map { server.log.currentGeneration.describes($0) } == true, place)
        #expect(try await vault.unsentCount(of: id) == 0, place)
        #expect(try await device.texts(id) == expected, place)
        if shared.role == .reader { reached.note(.readersAtTheEnd) }
        let notices = try await OwnedItems(vault, of: .vault(id)).notices()
        reached.note(.conflicts, notices.count { $0.kind == .conflict })
    }

    private func checkFormer(_ device: PersonDevice, _ server: MemoryVaults.Vault, _ place: Comment) async throws {
        let vault = try device.vault()
        _ = try? await vault.sync()
        guard let since = absentSince[device.name], let shared = try await vault.shared.vault(id) else { return }
        #expect(shared.role == nil, place)
        let present = try await device.texts(id).values
        for text in present {
            #expect((leaves[text]?.step ?? 0) <= since || leaves[text]?.author == device.name, "\(place): \(text)")
        }
        #expect(try await vault.key(id).map { server.log.currentGeneration.describes($0) } != true, place)
    }

    /// Every version that a person wrote, and that nobody has replaced who could see it, is an item. If its author has
    /// lost the right to write before it was sent, it is on the author's device.
    private func checkLeaves(_ expected: [ItemID: String]) async throws {
        let present = Set(expected.values)
        var kept = present
        for device in devices where try await device.vault().shared.vault(id) != nil {
            kept.formUnion(try await device.texts(id).values)
            kept.formUnion(try await device.vault().keptTexts(of: id))
        }
        for (text, leaf) in leaves.sorted(by: { $0.value.step < $1.value.step }) {
            let hadRight = leaf.losses == losses[leaf.author] ?? 0 && writers.contains(leaf.author)
            #expect((hadRight ? present : kept).contains(text), "seed \(seed): lost \(text), \(leaf)")
        }
    }

    private func count(_ server: MemoryVaults.Vault) {
        for entry in server.entries {
            switch entry.payload {
            case .remove: reached.note(.removals)
            case .leave: reached.note(.leaves)
            case .seal: reached.note(.seals)
            case .role(_, .reader): reached.note(.lowerings)
            default: break
            }
        }
        let (changes, refusals) = people.vaults.withState { ($0.changes, $0.refusals) }
        reached.note(.claims, changes["POST claim"] ?? 0)
        reached.note(.refusedForHead, refusals["membership_moved"] ?? 0)
    }
}
