import Cryptography
import Foundation
import SalternClient
import VaultLog

/// Joins, and the writing of items, by the rules of the server.
extension MemoryVaults {
    // MARK: Invitations

    static func open(_ id: String, _ token: String, _ state: State) -> Answer {
        guard let invitation = state.invitations[id], let vault = state.vaults[invitation.vault],
            token.hasPrefix("slv_"), let secret = try? Base64URL.decode(Array(token.dropFirst(4).utf8)),
            SHA256.hash(secret).bytes == invitation.tokenHash,
            vault.log.openInvitations.contains(where: { $0.terms.id.text == id })
        else { return problem(404, "not_found") }
        return (
            200,
            [
                "vault": invitation.vault, "preview": invitation.preview,
                "entries": vault.entries.map { text($0.bytes) },
            ]
        )
    }

    static func accept(_ id: String, _ members: [String: Any], _ account: AccountID, _ state: inout State) -> Answer {
        if state.invitations[id] == nil, let known = accepted(members, account, state) { return known }
        guard let invitation = state.invitations[id], var vault = state.vaults[invitation.vault],
            SHA256.hash(bytes(members["token"])).bytes == invitation.tokenHash,
            let entry = try? Entry(bytes(members["entry"]))
        else { return problem(404, "not_found") }
        guard case .join(let join) = entry.payload else { return problem(422, "wrong_kind") }
        guard join.invitation.text == id else {
            return problem(422, "entry_refused", ["reason": "closedInvitation"])
        }
        let isKnown = vault.log.hash(at: entry.number) == entry.hash
        if !isKnown || vault.holders[entry.author] != account {
            if vault.member(account) != nil { return problem(409, "already_member") }
            if isKnown { return problem(409, "membership_moved", ["head": 0, "entries": [String]()]) }
            guard entry.previous == vault.log.head.hash else {
                return moved(vault, since: Int(entry.number.value) - 1)
            }
            if vault.isRecovering { return problem(409, "recovering") }
            if let problem = skew(entry, state) { return problem }
            do { try vault.log.append(entry) } catch {
                return problem(422, "entry_refused", ["reason": error.rawValue])
            }
            vault.entries.append(entry)
            vault.holders[entry.author] = account
            vault.items.takeRevision()
            state.vaults[invitation.vault] = vault
        }
        return (
            isKnown ? 200 : 201,
            [
                "vault": invitation.vault, "number": Int(entry.number.value), "hash": text(entry.hash.bytes),
                "keyBox": invitation.keyBox,
            ]
        )
    }

    /// The reply to a repeated acceptance whose invitation was closed since. It has no key.
    private static func accepted(_ members: [String: Any], _ account: AccountID, _ state: State) -> Answer? {
        guard let entry = try? Entry(bytes(members["entry"])), let vault = state.vaults[entry.vault.text],
            vault.log.hash(at: entry.number) == entry.hash, vault.holders[entry.author] == account
        else { return nil }
        return (
            200, ["vault": entry.vault.text, "number": Int(entry.number.value), "hash": text(entry.hash.bytes)]
        )
    }

    // MARK: Items

    /// Returns the reason for which a change of items is rejected; nil for one that the items decide about.
    static func refusal(of request: HTTPRequest, _ vault: Vault, _ own: VaultMember) -> Answer? {
        let head = request.fields.first { $0.name.lowercased() == "vault-head" }.flatMap { Int($0.value) }
        guard let head else { return problem(428, "vault_head_required") }
        guard vault.role(of: own)?.writes ?? false else { return problem(403, "role_too_low") }
        guard head >= leastHead(vault, own), head <= vault.entries.count else {
            return problem(409, "membership_moved", ["head": vault.entries.count])
        }
        let members = json(request.body)
        let sealed = (members["operations"] as? [[String: Any]] ?? [members]).flatMap { operation in
            [operation["title"], operation["body"]].compactMap { $0 as? String }.map { bytes($0) }
        }
        let keys = Set(sealed.map { Array($0.dropFirst().prefix(4)) })
        guard keys.count <= 1 else { return problem(422, "unknown_format") }
        if let key = keys.first, key != vault.log.currentGeneration.keyID.bytes {
            return problem(409, "stale_generation")
        }
        return nil
    }

    /// The number of the last entry about the writer, or of the last generation if it is later.
    private static func leastHead(_ vault: Vault, _ own: VaultMember) -> Int {
        var least = Int(own.joined.number.value)
        for (index, entry) in vault.entries.enumerated() {
            let concerns =
                switch entry.payload {
                case .role(let member, _): member == own.id
                case .rekey: entry.author == own.id
                case .rotate, .remove: true
                default: false
                }
            if concerns { least = index + 1 }
        }
        return max(least, 1)
    }
}
