import Cryptography
import Foundation
import SalternClient
import VaultLog

/// Descriptions, entries and their keys, by the rules of the server.
extension MemoryVaults {
    /// The seconds by which the time of an entry can differ from the server's.
    private static let tolerance: TimeInterval = 300
    /// The number of entries in a page, small so that tests meet several.
    private static let page = 3

    // MARK: Descriptions

    static func description(_ id: String, _ vault: Vault, _ own: VaultMember, isWhole: Bool) -> [String: Any] {
        var members: [String: Any] = [
            "id": id, "memberId": own.id.text, "role": vault.role(of: own).map { "\($0)" } ?? "",
            "owner": own.id == ownerAtBackup(vault), "revision": vault.items.revision,
            "head": ["number": Int(vault.log.head.number.value), "hash": text(vault.log.head.hash.bytes)],
            "rotationDue": vault.log.isRotationDue, "boxMissing": vault.boxes[own.id] == nil,
            "usage": ["items": vault.items.itemCount, "bytes": 0],
            "limits": [
                "items": 10_000, "itemBytes": 1 << 20, "bytes": 1 << 28, "members": 32, "deletedDays": 30,
            ],
        ]
        if vault.isRecovering { members["recoveringUntil"] = "2099-01-01T00:00:00Z" }
        if isWhole {
            members["members"] = vault.log.presentMembers.map { member in
                var seat: [String: Any] = [
                    "id": member.id.text, "departed": vault.holders[member.id] == nil,
                    "boxMissing": vault.boxes[member.id] == nil,
                ]
                seat["seen"] = vault.seen[member.id]
                return seat
            }
        }
        return members
    }

    static func list(_ account: AccountID, _ state: State) -> Answer {
        let listed = state.vaults.compactMap { id, vault in
            vault.member(account).map { description(id, vault, $0, isWhole: false) }
        }
        return (200, ["vaults": listed])
    }

    static func create(_ members: [String: Any], _ account: AccountID, _ state: inout State) -> Answer {
        guard let entry = try? Entry(bytes(members["entry"])), let log = try? MembershipLog(founding: entry) else {
            return problem(422, "malformed_entry")
        }
        let reply: [String: Any] = ["id": log.vault.text, "number": 1, "hash": text(entry.hash.bytes)]
        if let known = state.vaults[log.vault.text] {
            return known.holders[entry.author] == account ? (200, reply) : problem(409, "already_member")
        }
        if let problem = skew(entry, state) { return problem }
        let items = MemoryServer()
        items.takeRevision()
        state.vaults[log.vault.text] = Vault(
            entries: [entry], log: log, holders: [entry.author: account], items: items)
        return (201, reply)
    }

    // MARK: Appending

    static func log(_ vault: Vault, _ own: VaultMember, _ after: Int) -> Answer {
        let rest = vault.entries.dropFirst(after)
        let page = rest.prefix(page)
        let generation = Int(vault.log.currentGeneration.number.value)
        return (
            200,
            [
                "entries": page.map { text($0.bytes) }, "more": rest.count > page.count,
                "boxes": vault.boxes[own.id].map { [["generation": generation, "box": $0]] } ?? [],
                "previousKeys": vault.previousKeys.sorted { $0.key > $1.key }
                    .map { ["generation": $0.key, "key": $0.value] as [String: Any] },
                "seals": vault.lists.keys.sorted(),
            ]
        )
    }

    static func skew(_ entry: Entry, _ state: State) -> Answer? {
        let now = Date().timeIntervalSince1970 + state.clockOffset
        guard abs(TimeInterval(entry.time.seconds) - now) > tolerance else { return nil }
        return problem(409, "clock_skew", ["time": Int(now)])
    }

    static func moved(_ vault: Vault, since number: Int) -> Answer {
        problem(
            409, "membership_moved",
            [
                "head": Int(vault.log.head.number.value),
                "entries": vault.entries.dropFirst(max(0, number)).prefix(128).map { text($0.bytes) },
            ])
    }

    /// Appends an entry of a member, with its keys and its list.
    static func append(
        _ members: [String: Any], _ vault: inout Vault, _ own: VaultMember, _ state: inout State,
        _ kinds: Set<EntryKind>
    ) -> Answer {
        guard let entry = try? Entry(bytes(members["entry"])) else { return problem(422, "malformed_entry") }
        guard kinds.contains(entry.payload.kind) else { return problem(422, "wrong_kind") }
        let revision = members["ifRevision"] as? NSNumber
        if revision != nil, ![.remove, .role].contains(entry.payload.kind) { return problem(422, "wrong_kind") }
        let status = entry.payload.kind == .invite ? 201 : 200
        let reply: [String: Any] = ["number": Int(entry.number.value), "hash": text(entry.hash.bytes)]
        if vault.log.hash(at: entry.number) == entry.hash { return (200, reply) }
        let highest = vault.items.highestItemRevision
        if let revision = revision?.int64Value, highest > revision {
            return problem(409, "vault_moved", ["revision": highest])
        }
        guard entry.author == own.id else { return problem(422, "entry_refused", ["reason": "unknownAuthor"]) }
        guard entry.previous == vault.log.head.hash else { return moved(vault, since: Int(entry.number.value) - 1) }
        if vault.isRecovering { return problem(409, "recovering") }
        if let problem = skew(entry, state) { return problem }
        if entry.payload.kind == .rekey, members["currentPasswordKey"] == nil {
            return problem(422, "missing_member")
        }
        if entry.payload.kind == .rotate, let rotations = state.rotations {
            guard rotations > 0 else { return problem(429, "too_many_entries") }
            state.rotations = rotations - 1
        }
        var next = vault.log
        do { try next.append(entry) } catch { return problem(422, "entry_refused", ["reason": error.rawValue]) }
        if let problem = store(members, &vault, next, entry) { return problem }
        vault.log = next
        vault.entries.append(entry)
        vault.items.takeRevision()
        state.invitations = state.invitations.filter { id, invitation in
            invitation.vault != next.vault.text
                || next.invitations.values.contains { $0.terms.id.text == id && !$0.isClosed }
        }
        return (status, reply.merging(["revision": vault.items.revision]) { $1 })
    }

    /// Stores the keys or the list of an entry.
    private static func store(
        _ members: [String: Any], _ vault: inout Vault, _ next: MembershipLog, _ entry: Entry
    ) -> Answer? {
        let boxes = members["boxes"] as? [[String: Any]]
        if next.generations.count > vault.log.generations.count {
            let named = boxes.map { $0.compactMap { VaultLog.MemberID(text: $0["member"] as? String ?? "") } } ?? []
            guard let boxes, let previous = members["previousKey"] as? String, named.count == boxes.count,
                named.count == Set(named).count, Set(named) == Set(next.presentMembers.map(\.id))
            else { return problem(422, "invalid_boxes") }
            guard bytes(previous).count == 60, boxes.allSatisfy({ bytes($0["box"]).count == 113 }) else {
                return problem(422, "invalid_boxes")
            }
            vault.boxes = Dictionary(uniqueKeysWithValues: zip(named, boxes.map { $0["box"] as? String ?? "" }))
            vault.previousKeys[next.currentGeneration.number.value] = previous
        } else if boxes != nil || members["previousKey"] != nil {
            return problem(422, "invalid_boxes")
        } else if [.leave, .rekey].contains(entry.payload.kind) {
            vault.boxes[entry.author] = nil
        }
        guard case .seal(let seal) = entry.payload else {
            return members["list"] == nil ? nil : problem(422, "invalid_list")
        }
        guard let list = SealList(bytes(members["list"])), list.isList(of: seal) else {
            return problem(422, "invalid_list")
        }
        guard list.edits.count <= vault.items.itemCount else {
            return problem(403, "quota_exceeded", ["limit": "sealed"])
        }
        let latest = Set(next.latestSeals.map(\.number.value))
        vault.lists = vault.lists.filter { latest.contains($0.key) }
        vault.lists[entry.number.value] = text(list.bytes)
        return nil
    }

    // MARK: Keys, lists and heads

    static func putBoxes(_ members: [String: Any], _ vault: inout Vault, _ own: VaultMember) -> Answer {
        guard vault.role(of: own) == .manager else { return problem(403, "role_too_low") }
        let present = vault.log.currentGeneration.number.value
        guard (members["generation"] as? NSNumber)?.uint64Value == present else {
            return problem(409, "stale_generation")
        }
        for box in members["boxes"] as? [[String: Any]] ?? [] {
            guard let id = VaultLog.MemberID(text: box["member"] as? String ?? ""),
                vault.log.presentMembers.contains(where: { $0.id == id }), let text = box["box"] as? String
            else { return problem(422, "invalid_boxes") }
            vault.boxes[id] = text
        }
        for key in members["previousKeys"] as? [[String: Any]] ?? [] {
            guard let number = (key["generation"] as? NSNumber)?.uint64Value, number > 1, number <= present,
                let text = key["key"] as? String
            else { return problem(422, "invalid_boxes") }
            vault.previousKeys[number] = text
        }
        return (204, [:])
    }

    static func putSeen(_ members: [String: Any], _ vault: inout Vault, _ own: VaultMember) -> Answer {
        guard let number = EntryNumber((members["number"] as? NSNumber)?.uint64Value ?? 0),
            let hash = EntryHash(bytes(members["hash"])), vault.log.hash(at: number) == hash,
            let signature = VaultSignature(bytes(members["signature"])),
            MemberStatement(.seen, own.id, Head(number: number, hash: hash), signature).isValid(in: vault.log)
        else { return problem(422, "seen_refused") }
        let known = vault.seen[own.id]?["number"] as? Int ?? 0
        guard Int(number.value) > known else { return (204, [:]) }
        vault.seen[own.id] = [
            "number": Int(number.value), "hash": text(hash.bytes), "signature": text(signature.bytes),
        ]
        return (204, [:])
    }

    static func putList(_ number: String, _ members: [String: Any], _ vault: inout Vault) -> Answer {
        guard let number = UInt64(number), let index = Int(exactly: number), vault.entries.indices.contains(index - 1),
            case .seal(let seal) = vault.entries[index - 1].payload
        else { return problem(404, "not_found") }
        guard let list = SealList(bytes(members["list"])), list.isList(of: seal) else {
            return problem(422, "invalid_list")
        }
        vault.lists[number] = text(list.bytes)
        return (204, [:])
    }
}
