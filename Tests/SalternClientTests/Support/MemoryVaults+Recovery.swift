import Cryptography
import Foundation
import SalternClient
import VaultLog

/// A restored database, by the rules of the server.
extension MemoryVaults {
    /// Puts entries back. Those of the owner replace provisional ones.
    static func putBack(_ members: [String: Any], _ vault: inout Vault, _ own: VaultMember?) -> Answer {
        guard let settled = vault.settled else { return problem(409, "not_recovering") }
        var entries: [Entry] = []
        for text in members["entries"] as? [String] ?? [] {
            guard let entry = try? Entry(bytes(text)) else { return problem(422, "malformed_entry") }
            entries.append(entry)
        }
        var (log, known) = (vault.log, vault.entries)
        for entry in entries where log.hash(at: entry.number) != entry.hash {
            if known.count >= Int(entry.number.value), Int(entry.number.value) > settled, own?.id == ownerAtBackup(vault) {
                known = Array(known.prefix(Int(entry.number.value) - 1))
                guard let shorter = try? MembershipLog(known, areVerified: true) else { return problem(500, "internal") }
                log = shorter
            }
            guard entry.previous == log.head.hash else { return moved(vault, since: Int(entry.number.value) - 1) }
            if let own, own.id != ownerAtBackup(vault), entry.author == own.id {
                return problem(422, "entry_refused", ["reason": "notPermitted"])
            }
            do { try log.append(entry) } catch { return problem(422, "entry_refused", ["reason": error.rawValue]) }
            known.append(entry)
        }
        if log.generations.count != vault.log.generations.count { vault.boxes = [:] }
        (vault.log, vault.entries) = (log, known)
        vault.items.takeRevision()
        return (
            200,
            [
                "number": Int(log.head.number.value), "hash": text(log.head.hash.bytes),
                "revision": vault.items.revision,
            ]
        )
    }

    /// The owner by the entries of the backup.
    private static func ownerAtBackup(_ vault: Vault) -> VaultLog.MemberID? {
        guard let settled = vault.settled else { return vault.log.owner }
        return (try? MembershipLog(vault.entries.prefix(settled), areVerified: true))?.owner
    }

    static func endRecovery(_ members: [String: Any], _ vault: inout Vault, _ own: VaultMember) -> Answer {
        guard own.id == vault.log.owner else { return problem(403, "role_too_low") }
        let head = members["head"] as? [String: Any] ?? [:]
        guard (head["number"] as? NSNumber)?.uint64Value == vault.log.head.number.value,
            bytes(head["hash"]) == vault.log.head.hash.bytes
        else { return moved(vault, since: (head["number"] as? NSNumber)?.intValue ?? 0) }
        vault.settled = nil
        return (204, [:])
    }

    /// Binds a member without account to the caller's.
    static func claim(
        _ id: String, _ members: [String: Any], _ account: AccountID, _ state: inout State
    ) -> Answer {
        guard var vault = state.vaults[id] else { return problem(404, "not_found") }
        if vault.isRecovering {
            let answer = putBack(members, &vault, nil)
            if answer.0 >= 400 { return answer }
        }
        let head = members["head"] as? [String: Any] ?? [:]
        guard let member = VaultLog.MemberID(text: members["member"] as? String ?? ""),
            vault.log.presentMembers.contains(where: { $0.id == member })
        else { return problem(404, "not_found") }
        guard vault.holders[member] == nil else { return problem(409, "already_member") }
        guard let number = EntryNumber((head["number"] as? NSNumber)?.uint64Value ?? 0),
            let hash = EntryHash(bytes(head["hash"])), let signature = VaultSignature(bytes(members["signature"])),
            let claimant = MemberAccountID(account.bytes),
            MemberStatement(.claim(claimant), member, Head(number: number, hash: hash), signature)
                .isValid(in: vault.log)
        else { return problem(422, "claim_refused") }
        vault.holders[member] = account
        state.vaults[id] = vault
        return (200, ["id": id, "memberId": member.text])
    }
}
