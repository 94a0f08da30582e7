internal import Cryptography

/// The parts of a vault that work on the items of one owner.
final class ItemParts {
    let scope: ItemScope
    let plan: PlanLimits
    let items: VaultItems
    let attachments: AttachmentService
    /// The items that other devices have deleted and that were not reported yet, after syncs in the background.
    private var removed: Set<ItemID> = []

    init(_ scope: ItemScope) {
        self.scope = scope
        plan = PlanLimits(scope)
        items = VaultItems(scope, plan)
        attachments = AttachmentService(scope, plan)
    }

    // MARK: Rounds

    /// Sends and fetches the items and their attachments. The caller holds ``VaultSession/serverLock``.
    func round(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        try await makeRoom()
        var report = try await runEngine(agreement)
        if try await attachments.waiting.send(), try scope.stored({ try scope.store.changeCount() }) > 0 {
            report.add(try await runEngine(agreement))
        }
        return report
    }

    /// Before anything is sent: abandoned chunks may use the room.
    private func makeRoom() async throws(VaultError) {
        try attachments.waiting.forgetUnsettled()
        do throws(VaultError) { try await attachments.abandoned.removeAbandoned() } catch .refused {
            // An error does not block other changes.
        }
    }

    /// - Parameters:
    ///   - sends: False to fetch only.
    ///   - learns: False to judge by the known log of a shared vault.
    func runEngine(
        _ agreement: DeletionAgreement = .none, sends: Bool = true, learns: Bool = true
    ) async throws(VaultError) -> SyncReport {
        let engine = try scope.engine
        let noticesBefore = try scope.stored { try scope.store.lastNotice() }
        var report = SyncReport()
        do {
            // Stored changes are not fetched again, so they are reported even after an error.
            defer {
                noteRemoved(report)
                let hasNotices = (try? scope.store.lastNotice()) != noticesBefore
                if !report.changed.isEmpty || hasNotices { scope.notifySynced(report.changed) }
            }
            try await engine.round(into: &report, agreement, sends: sends, learns: learns)
            plan.noteReply()
            try removeAged()
            return report
        } catch {
            throw VaultError(ofEngine: error)
        }
    }

    /// Returns true when a key, an entry or a list of a shared vault has arrived since its versions were last judged.
    /// Unsent edits can wait for it, too.
    func isJudgingDue() throws(VaultError) -> Bool {
        guard let stamp = try? scope.sealer.stamp else { return false }
        return try scope.stored { try scope.store.fact(.judgedBy) } != stamp
    }

    /// Withdraws all unsent changes, after the membership in a shared vault has ended. Their content stays on this
    /// device, in the trash or among the replaced versions.
    func retireChanges() throws(VaultError) -> SyncReport {
        let engine = try scope.engine
        var report = SyncReport()
        do { try engine.retireChanges(into: &report) } catch { throw VaultError(ofEngine: error) }
        if !report.changed.isEmpty { scope.notifySynced(report.changed) }
        return report
    }

    /// Removes expired content from the trash, at the end of a successful round.
    private func removeAged() throws(VaultError) {
        let before = try scope.stored { try scope.store.number(.agedTo) }
        guard let age = try scope.confirmedAge(), age != before else { return }
        try scope.stored {
            try scope.store.removeAged(at: age)
            try scope.store.set(.agedTo, age)
        }
    }

    private func noteRemoved(_ report: SyncReport) {
        removed.subtract(report.changed)
        removed.formUnion(report.removed)
    }

    /// Returns the items that other devices have deleted since the last call.
    func takeRemoved() -> Set<ItemID> {
        defer { removed = [] }
        return removed
    }

    /// Returns true when an event of the server has changes that this device does not have.
    func isNews(_ revision: Int64) throws(VaultError) -> Bool { try scope.engine.isNews(revision) }
}

extension ItemParts {
    /// Returns the content of a body: the body itself, or the content of the attachment that it names.
    func wholeContent(of body: SecureBytes) async throws(VaultError) -> SecureBytes {
        // A body that only begins like a manifest is content that a user has put.
        guard let attachment = Attachment(body) else { return body }
        do throws(VaultError) {
            return try await attachments.reader.content(of: attachment, progress: { _ in })
        } catch {
            throw error.ofContent
        }
    }

    /// Returns the body of an item with the content of a source.
    func body(holding source: AttachmentSource) async throws(VaultError) -> SecureBytes {
        do throws(VaultError) {
            let count = min(source.byteCount, Int64(Attachment.markByteCount))
            if Attachment.isMarked(try source.piece(0, Int(count))) { return try await body(source, nil) }
        } catch {
            throw error.ofContent
        }
        try await plan.refuseTooLong(bodyOf: source.byteCount)
        do throws(VaultError) {
            return try source.piece(0, Int(source.byteCount))
        } catch {
            throw error.ofContent
        }
    }

    /// Returns a body with new content, in the form of the present one.
    func body(holding content: SecureBytes, insteadOf body: SecureBytes) async throws(VaultError) -> SecureBytes {
        let before = Attachment(body)
        guard before != nil || Attachment.isMarked(content) else {
            try await plan.refuseTooLong(bodyOf: Int64(content.count))
            return content
        }
        do throws(VaultError) {
            return try await self.body(AttachmentSource(content), before)
        } catch {
            throw error.ofContent
        }
    }

    /// Returns a body with the content of a source, in the form of the present one.
    func body(holding source: AttachmentSource, insteadOf body: SecureBytes) async throws(VaultError) -> SecureBytes {
        guard let before = Attachment(body) else { return try await self.body(holding: source) }
        do throws(VaultError) {
            return try await self.body(source, before)
        } catch {
            throw error.ofContent
        }
    }

    /// Returns the body of an attachment that continues another one.
    private func body(_ source: AttachmentSource, _ before: Attachment?) async throws(VaultError) -> SecureBytes {
        try await attachments.attach(
            source, AttachmentDraft(before?.id), properties: before?.properties ?? [:], progress: { _ in }
        ).body()
    }
}

/// The parts of all owners of items: of the account and of its shared vaults.
final class ItemOwners {
    let account: ItemParts
    private let session: VaultSession
    private var vaults: [SharedVaultID: ItemParts] = [:]
    /// Called before each piece of an attachment is sent, when nothing else uses the store.
    var beforePiece: (() async throws(VaultError) -> Void)? {
        didSet { for parts in all { parts.attachments.beforePiece = beforePiece } }
    }

    init(_ session: VaultSession) {
        self.session = session
        account = ItemParts(ItemScope(session))
        session.whenLocked.append { [weak self] in
            for parts in self?.vaults.values.map(\.self) ?? [] { parts.scope.forgetKeys() }
        }
    }

    /// Returns the parts of an owner. A vault gets its tables at the first call.
    /// - Throws: ``SharedVaultError/unknownVault`` for a vault of which this account has neither keys nor items.
    func parts(of owner: ItemOwner) throws(VaultError) -> ItemParts {
        guard case .vault(let id) = owner else { return account }
        let number = try session.stored { try session.store.number(of: id) }
        // Another process can have removed the vault and have added it again.
        if let known = vaults[id], known.scope.store.database.number == number { return known }
        vaults[id] = nil
        if number == nil {
            guard let memberships = session.memberships, try memberships.isKnown(id) else {
                throw .shared(.unknownVault)
            }
        }
        let parts = ItemParts(try ItemScope(session, vault: id))
        parts.attachments.beforePiece = beforePiece
        vaults[id] = parts
        return parts
    }

    /// Forgets the parts of a vault whose items were removed from this device.
    func forget(_ id: SharedVaultID) { vaults[id] = nil }

    /// The parts that are in use.
    private var all: [ItemParts] { [account] + vaults.values }

    /// Returns the present version of each item.
    func stamps() throws -> [ItemOwner: [ItemID: StoreStamp]] {
        // Another process can have removed a vault.
        for (id, parts) in vaults where try session.store.number(of: id) != parts.scope.store.database.number {
            vaults[id] = nil
        }
        let stamps = try all.map { ($0.scope.owner, try $0.scope.store.stamps()) }
        return Dictionary(stamps) { _, last in last }
    }

    /// True while a call adds an attachment.
    var areAttaching: Bool { all.contains { !$0.attachments.running.isEmpty } }
}
