import Cryptography
import Foundation
import SalternClient
import VaultLog

/// A restored database, by the rules of the server.
extension MemoryVaults {
    /// Puts entries back. Those of the owner replace provisional ones.
    static func putBack(_ members: [String: Any], _ vault: inout Vault, _ own: VaultMember) -> Answer {
        guard let settled = vault.settled else { return problem(409, "not_recovering") }
        var entries: [Entry] = []
        for text in members["entries"] as? [String] ?? [] {
            guard let entry = try? Entry(bytes(text)) else { return problem(422, "malformed_entry") }
            entries.append(entry)
        }
        var (log, known) = (vault.log, vault.entries)
        let isOwners = own.id == ownerAtBackup(vault)
        for entry in entries where log.hash(at: entry.number) != entry.hash {
            let number = Int(entry.number.value)
            if isOwners, known.count >= number, number > settled {
                known = Array(known.prefix(number - 1))
                guard let shorter = try? MembershipLog(known, areVerified: true) else {
                    return problem(500, "internal")
                }
                log = shorter
            }
            guard entry.previous == log.head.hash else { return moved(vault, since: number - 1) }
            // Nobody but the owner puts own entries back.
            if !isOwners, entry.author == own.id { break }
            do { try log.append(entry) } catch { return problem(422, "entry_refused", ["reason": error.rawValue]) }
            known.append(entry)
        }
        var reply: [String: Any] = ["number": Int(log.head.number.value), "hash": text(log.head.hash.bytes)]
        if log.head != vault.log.head {
            if log.currentGeneration != vault.log.currentGeneration { vault.boxes = [:] }
            (vault.log, vault.entries) = (log, known)
            vault.items.takeRevision()
            reply["revision"] = vault.items.revision
        }
        return (200, reply)
    }

    /// The owner by the entries of the backup.
    static func ownerAtBackup(_ vault: Vault) -> VaultLog.MemberID? {
        guard let settled = vault.settled else { return vault.log.owner }
        return (try? MembershipLog(vault.entries.prefix(settled), areVerified: true))?.owner
    }

    static func endRecovery(_ members: [String: Any], _ vault: inout Vault, _ own: VaultMember) -> Answer {
        guard own.id == ownerAtBackup(vault) else { return problem(403, "role_too_low") }
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
        let head = members["head"] as? [String: Any] ?? [:]
        guard let member = VaultLog.MemberID(text: members["member"] as? String ?? ""),
            vault.log.presentMembers.contains(where: { $0.id == member })
        else { return problem(404, "not_found") }
        let held = vault.log.presentMembers.first { vault.holders[$0.id] == account }?.id ?? member
        guard held == member, vault.holders[member] ?? account == account else { return problem(409, "already_member") }
        guard let number = EntryNumber((head["number"] as? NSNumber)?.uint64Value ?? 0),
            let hash = EntryHash(bytes(head["hash"])), let signature = VaultSignature(bytes(members["signature"])),
            let claimant = MemberAccountID(account.bytes), vault.log.hash(at: number) == hash,
            MemberStatement(.claim(claimant), member, Head(number: number, hash: hash), signature)
                .isValid(in: vault.log)
        else { return problem(422, "claim_refused") }
        vault.holders[member] = account
        state.vaults[id] = vault
        return (200, ["id": id, "memberId": member.text])
    }
}
