internal import Cryptography
internal import Foundation
internal import VaultLog

/// Opens invitations, shows them before a join, and joins by them.
struct VaultInviting {
    let service: SharedVaultService

    /// The maximum number of entries that are made for one join.
    private static let attempts = 8

    private var session: VaultSession { service.session }

    // MARK: Inviting

    func invite(
        _ id: SharedVaultID, role: SharedRole, uses: Int, expires: Duration, _ choice: InvitationCodeChoice,
        label: String?, base: URL
    ) async throws(VaultError) -> NewInvitation {
        guard let uses = UInt16(exactly: uses), (1...LogBounds.uses).contains(uses) else {
            throw .shared(.invalidUses)
        }
        let seconds = expires.components.seconds
        guard (1...Int64(LogBounds.invitationLife)).contains(seconds) else { throw .shared(.invalidExpiry) }
        guard let server = PinnedServer.canonical(base.absoluteString) else {
            throw .unavailable(.transport(.configuration(.address)))
        }
        if let label, label.utf8.count > MembershipRecord.labelLimit { throw .shared(.invalidName) }
        let invitation = VaultLog.InvitationID.random()
        let secret = SecureRandom.secureBytes(InvitationSecrets.secretByteCount)
        let code = choice == .generated ? InvitationCode.random() : nil
        guard let secrets = try? InvitationSecrets(invitation, secret: secret, code: code) else { throw .unreadable }
        let shown = InvitationID(invitation)
        if let label { try service.update(id) { $0.labels[shown] = label } }
        let entry = try await service.appending(to: id) { () async throws(VaultError) in
            try await EntrySending(service: service, id: id).append(
                send: { api, draft, token throws(APIError) in
                    try await send(draft, secrets, id, api, token)
                },
                { state, time throws(VaultError) in
                    guard let expiry = EntryTime(seconds: time.seconds + UInt64(seconds)),
                        let terms = InvitationTerms(
                            id: invitation, admissionKey: secrets.admissionKey.publicKey, role: role.role,
                            expiry: expiry, uses: uses, hasCode: code != nil)
                    else { throw .shared(.invalidExpiry) }
                    return try EntrySending.draft(.invite(terms), state, at: time)
                }
            )?.entry
        }
        try? await service.sendAccountItems()
        guard let stored = try service.known(id).log.invitations[invitation],
            let link = InvitationLink(server: server, stored, secret: secret)
        else { throw .unavailable(.unexpectedReply) }
        guard case .invite(let terms)? = entry?.payload else { throw .unreadable }
        return NewInvitation(
            id: shown, link: link.text,
            code: code.map { $0.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } },
            expiresAt: terms.expiry.date)
    }

    /// Sends an `invite` entry with the content that its link opens.
    private func send(
        _ draft: EntrySending.Draft, _ secrets: InvitationSecrets, _ id: SharedVaultID, _ api: SalternAPI,
        _ token: Token
    ) async throws(APIError) {
        guard let state = try? service.known(id), let key = state.presentKey, let own = state.own,
            let vaultName = ClaimedName(service.name(of: state)),
            let inviter = ClaimedName(service.name(of: own, state) ?? "member"),
            let content = try? InvitationContent(secrets, vaultName: vaultName, inviter: inviter, key)
        else { throw .unexpectedReply }
        _ = try await api.createInvitation(
            id, draft.entry.bytes, tokenHash: secrets.tokenHash.bytes, preview: content.preview,
            keyBox: content.sealedKey, token)
    }

    // MARK: Joining

    /// An invitation that was fetched and verified.
    private struct Opened {
        let link: InvitationLink
        let secrets: InvitationSecrets
        let preview: VaultLog.InvitationPreview
        let log: MembershipLog
        let entries: [Entry]
    }

    /// Fetches an invitation and verifies it. No session is needed.
    static func preview(
        _ text: String, code: String?, _ api: SalternAPI, _ settings: VaultSettings
    ) async throws(VaultError) -> InvitationPreview {
        let opened = try await open(text, code, api, settings)
        return InvitationPreview(
            vault: SharedVaultID(opened.log.vault), vaultName: opened.preview.vaultName.text,
            inviterName: opened.preview.inviterName.text, role: SharedRole(opened.preview.terms.role),
            expiresAt: opened.preview.terms.expiry.date, memberCount: opened.log.presentMembers.count)
    }

    private static func open(
        _ text: String, _ code: String?, _ api: SalternAPI, _ settings: VaultSettings
    ) async throws(VaultError) -> Opened {
        let link = try InvitationAddress(text).link
        if let own = settings.transport.host, own != PinnedServer.host(of: link.server) {
            throw .shared(.otherServer(link.server))
        }
        return try await open(link, try secrets(of: link, code), api, settings)
    }

    private static func open(
        _ link: InvitationLink, _ secrets: InvitationSecrets, _ api: SalternAPI, _ settings: VaultSettings
    ) async throws(VaultError) -> Opened {
        let id = InvitationID(link.id)
        let reply: VaultInvitationReply
        do throws(APIError) {
            reply = try await settings.retries({ () throws(APIError) in
                try await api.openInvitation(id, token: secrets.token)
            })
        } catch {
            // The server answers all unknown tokens alike, also that of a wrong code.
            if error.code == .notFound { throw .shared(link.hasCode ? .invitationGoneOrWrongCode : .invitationGone) }
            throw VaultError(error)
        }
        var entries: [Entry] = []
        for bytes in reply.entries.map(\.bytes) {
            guard let entry = try? Entry(bytes) else { throw .unavailable(.unexpectedReply) }
            entries.append(entry)
        }
        guard let log = try? MembershipLog(entries) else { throw .shared(.wrongVault) }
        let now = EntryTime(api.clock.time() ?? Date())
        do throws(VaultLog.InvitationPreview.Failure) {
            let preview = try VaultLog.InvitationPreview(link, secrets, reply.preview.bytes, log, at: now)
            return Opened(link: link, secrets: secrets, preview: preview, log: log, entries: entries)
        } catch {
            switch error {
            case .closed, .expired: throw .shared(.invitationGone)
            case .wrongSecrets: throw .shared(.wrongCode)
            case .wrongLog, .notAuthentic, .wrongKey: throw .shared(.wrongVault)
            }
        }
    }

    private static func secrets(
        of link: InvitationLink, _ typed: String?
    ) throws(VaultError) -> InvitationSecrets {
        var code: InvitationCode?
        if link.hasCode {
            guard let typed else { throw .shared(.codeRequired) }
            do throws(InvitationCode.Malformation) { code = try InvitationCode(typed) } catch {
                throw .shared(.invalidCode)
            }
        }
        guard let secrets = try? InvitationSecrets(link.id, secret: link.secret, code: code) else { throw .unreadable }
        return secrets
    }

    /// Returns true for the link of a vault in which this account is a member. The link can be used up by its join.
    private func isMember(by text: String) throws(VaultError) -> Bool {
        let invitation = try InvitationAddress(text).link.id
        for id in try service.recordIDs() {
            if let state = try service.state(id), state.role != nil, state.log.invitations[invitation] != nil {
                return true
            }
        }
        return false
    }

    /// Joins by a link. A repeated call continues an interrupted one.
    func join(_ text: String, code: String?, as person: String) async throws(VaultError) -> SharedVaultID {
        guard let name = ClaimedName(person.precomposedStringWithCanonicalMapping) else { throw .shared(.invalidName) }
        if let id = try await resume(text, code) { return id }
        var opened: Opened
        do throws(VaultError) { opened = try await Self.open(text, code, session.api, session.settings) } catch {
            switch error {
            case .shared(.invitationGone), .shared(.invitationGoneOrWrongCode):
                throw try isMember(by: text) ? .shared(.alreadyMember) : error
            default: throw error
            }
        }
        let id = SharedVaultID(opened.log.vault)
        if let state = try service.state(id), state.role != nil, let own = state.own {
            if opened.log.members[own.id]?.role != nil { throw .shared(.alreadyMember) }
            // Another device of the account has left.
            _ = try await service.refresh()
            if try service.state(id)?.role != nil { throw .shared(.alreadyMember) }
        }
        try compare(opened.log, id)
        // The record of another device of the account can arrive meanwhile, also that of an ended membership.
        var isSent = false
        for _ in 0..<Self.attempts where !isSent {
            if try !isBegun(opened.log, id) { try begin(id, opened.preview.vaultName.text) }
            try await service.sendRecord(id)
            isSent = try isBegun(opened.log, id)
        }
        guard isSent else { throw .shared(.busy) }
        for _ in 0..<Self.attempts {
            do throws(VaultError) {
                let present = opened
                try await service.holding { () async throws(VaultError) in try await join(present, id, name) }
                return id
            } catch .shared(.busy) {
                opened = try await Self.open(opened.link, opened.secrets, session.api, session.settings)
            }
        }
        throw .shared(.busy)
    }

    /// Makes the account's record of a new membership.
    private func begin(_ id: SharedVaultID, _ vaultName: String) throws(VaultError) {
        guard let keys = try? MemberPrivateKeys.generate() else { throw .unreadable }
        var record = MembershipRecord(memberId: MemberID(VaultLog.MemberID.random()), keys, name: vaultName)
        // The keys of an ended membership stay, for items of that time.
        if let earlier = try service.record(id) { record = record.merged(withEarlier: earlier) }
        try session.transaction {
            try session.store.set(.joining, of: id, nil)
            try service.write(record, id)
        }
        try service.note(id) { $0.needsFreshKeys = nil }
    }

    /// True when the account's record has keys for this join that no entry contains yet.
    private func isBegun(_ log: MembershipLog, _ id: SharedVaultID) throws(VaultError) -> Bool {
        guard let record = try service.record(id), !record.isForgotten, let keys = record.latestKeys else {
            return false
        }
        if let member = log.members[VaultLog.MemberID(record.memberId)] {
            guard member.role != nil, record.privateKeys(of: member.keys) != nil else { return false }
            // The reply to the accepted join was lost. Without the entry, another device of this account has joined.
            guard try session.stored({ try session.store.fact(.joining, of: id) }) != nil else {
                throw .shared(.alreadyMember)
            }
            return true
        }
        return !log.isUsed(keys.publicKeys)
    }

    /// Compares the log of a link with the known one of an earlier membership.
    private func compare(_ log: MembershipLog, _ id: SharedVaultID) throws(VaultError) {
        guard let known = try service.state(id)?.log else { return }
        switch LogComparison(own: known.hashes, other: log.hashes) {
        case .same, .isBehind: break
        case .isAhead:
            try service.note(id) { $0.isRolledBack = true }
            throw .shared(.stopped)
        case .diverged(let number):
            try service.note(id) { $0.fork = $0.fork ?? number.value }
            throw .shared(.wrongVault)
        }
    }

    /// Completes a join whose accepted entry the server has, also when the link is used up.
    /// - Returns: nil when there is none for the link.
    private func resume(_ text: String, _ code: String?) async throws(VaultError) -> SharedVaultID? {
        let link = try InvitationAddress(text).link
        for id in try session.stored({ try session.store.vaultIDs(with: .joining) }) {
            guard let bytes = try session.stored({ try session.store.fact(.joining, of: id) }),
                let entry = try? Entry(bytes), case .join(let join) = entry.payload, join.invitation == link.id,
                try service.record(id)?.isForgotten == false, try service.state(id)?.role == nil
            else { continue }
            let secrets = try Self.secrets(of: link, code)
            let token = try service.token
            let reply: VaultJoinReply
            do throws(APIError) {
                reply = try await session.settings.retries({ () throws(APIError) in
                    try await session.api.acceptInvitation(
                        InvitationID(link.id), entry.bytes, token: SecretBytes(secrets.token), token)
                })
            } catch {
                // It was not accepted, or cannot be any more. The link is opened again.
                if error.isRefusal { return nil }
                throw VaultError(ofShared: error)
            }
            guard reply.vault == id, reply.hash.bytes == entry.hash.bytes else { throw .unavailable(.unexpectedReply) }
            try await service.holding { () async throws(VaultError) in
                try await take(entry, link, secrets, reply.keyBox?.bytes ?? [], id)
            }
            return id
        }
        return nil
    }

    /// Fetches the log of a joined vault, which a link does not open any more, and verifies it against the link.
    private func take(
        _ entry: Entry, _ link: InvitationLink, _ secrets: InvitationSecrets, _ box: [UInt8], _ id: SharedVaultID
    ) async throws(VaultError) {
        let known = try service.state(id)?.log
        let update = LogUpdate(service: service, id: id)
        try await update.fetch(after: known?.head.number.value ?? 0)
        let log = try service.known(id).log
        guard log.hash(at: entry.number) == entry.hash, let invitation = log.invitations[link.id],
            link.isOf(invitation)
        else {
            if known == nil {
                try session.stored { try session.store.forgetLog(id) }
                service.forgetState(id)
            }
            throw .shared(.wrongVault)
        }
        let generation = log.generation(at: entry.number).number
        if let key = VaultLog.InvitationPreview.openKey(box, secrets, generation, log) {
            try service.update(id) { $0.take(key, generation) }
            try await update.fetch(after: log.head.number.value)
        }
        try session.stored { try session.store.set(.joining, of: id, nil) }
        service.notify([id])
    }

    private func join(_ opened: Opened, _ id: SharedVaultID, _ name: ClaimedName) async throws(VaultError) {
        guard let record = try service.record(id), let keys = record.latestKeys else { throw .unreadable }
        try compare(opened.log, id)
        let member = VaultLog.MemberID(record.memberId)
        let entry: Entry
        if let bytes = try session.stored({ try session.store.fact(.joining, of: id) }), let kept = try? Entry(bytes),
            opened.log.hash(at: kept.number) == kept.hash
                || opened.log.head.hash == kept.previous && kept.time.isPlausible(at: service.now)
        {
            // The server has it, or can still accept it.
            entry = kept
        } else {
            entry = try EntrySending.draft { () throws(EntryRejection) in
                try EntryWriter.join(
                    opened.secrets, as: member, named: name, keys, opened.preview.nameKey, after: opened.log,
                    at: service.now)
            }.entry
        }
        try session.stored { try session.store.set(.joining, of: id, entry.bytes) }
        let token = try service.token
        let reply: VaultJoinReply
        do throws(APIError) {
            reply = try await session.settings.retries({ () throws(APIError) in
                try await session.api.acceptInvitation(
                    InvitationID(opened.link.id), entry.bytes, token: SecretBytes(opened.secrets.token), token)
            })
        } catch {
            if error.code == .notFound { throw .shared(.invitationGone) }
            throw VaultError(ofShared: error)
        }
        guard reply.vault == id, reply.hash.bytes == entry.hash.bytes else { throw .unavailable(.unexpectedReply) }
        try accept(reply.keyBox?.bytes ?? [], entry, opened, id)
        // The log that the link opened is verified. Entries that came since are fetched after it.
        try await LogUpdate(service: service, id: id).fetch(after: try service.known(id).log.head.number.value)
    }

    /// Stores the log, and the key that the link opens.
    private func accept(
        _ box: [UInt8], _ entry: Entry, _ opened: Opened, _ id: SharedVaultID
    ) throws(VaultError) {
        var log = opened.log
        var entries = opened.entries
        if log.hash(at: entry.number) != entry.hash {
            do throws(EntryRejection) { try log.append(entry) } catch { throw .unavailable(.unexpectedReply) }
            entries.append(entry)
        }
        let generation = log.generation(at: entry.number).number
        let key = try? opened.preview.openKey(box, opened.secrets, generation, log)
        try session.transaction {
            try service.update(id) { record in
                if let key { record.take(key, generation) }
                record.takeHead(of: log)
            }
            let findings = try service.findings(of: id)
            try session.store.forgetVault(id)
            try service.take(entries, id)
            // What the server has shown before stays known.
            try service.note(id) { $0 = findings.ofNewMembership }
        }
        service.forgetState(id)
        service.notify([id])
    }
}

extension MembershipRecord {
    /// Keeps the keys of an earlier membership of the same vault.
    fileprivate func merged(withEarlier earlier: MembershipRecord) -> MembershipRecord {
        var merged = self
        merged.keys = earlier.keys + keys
        merged.generations = earlier.generations
        merged.heads = earlier.heads
        merged.labels = earlier.labels
        return merged
    }
}
