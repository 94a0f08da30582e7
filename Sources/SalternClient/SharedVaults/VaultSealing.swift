internal import Cryptography
internal import VaultLog

/// The lists of the latest seals that this device has.
struct SealLists: Sendable {
    let byDigest: [SHA256Digest: SealList]

    init(_ lists: [SealList]) { byDigest = EditEvidence.byDigest(lists) }

    /// Returns the list of a seal; nil when this device does not have it.
    subscript(_ seal: Seal) -> SealList? { byDigest[seal.digest].flatMap { $0.isList(of: seal) ? $0 : nil } }
}

/// The findings about versions of items, until ``VaultUpkeep`` stores them.
final class JudgingEvidence: Sendable {
    struct Found: Sendable {
        /// Heads in validly signed versions that the log does not have: the author's device has another history.
        var heads: [VaultLog.MemberID: Head] = [:]
        /// By item, true when its last judged version never counts.
        var refusals: [ItemID: Bool] = [:]
    }

    /// The maximum number of items with findings.
    private static let limit = 1_000

    private let found = Locked<[SharedVaultID: Found]>([:])

    func add(_ head: Head, by member: VaultLog.MemberID, _ id: SharedVaultID) {
        found.withLock { $0[id, default: Found()].heads[member] = head }
    }

    /// - Parameter isKnown: True for an item with a stored finding.
    func note(_ item: ItemID, isRefused: Bool, isKnown: Bool, _ id: SharedVaultID) {
        found.withLock { found in
            let known = found[id]?.refusals
            guard isRefused || isKnown || known?[item] != nil, known?.count ?? 0 < Self.limit else { return }
            found[id, default: Found()].refusals[item] = isRefused
        }
    }

    func take(_ id: SharedVaultID) -> Found { found.withLock { $0.removeValue(forKey: id) ?? Found() } }
}

/// Seals, signs, opens and judges the items of one shared vault, with its keys and its log at one time.
struct VaultSealing: ItemSealing {
    let id: SharedVaultID
    let log: MembershipLog
    let keys: GenerationKeys
    /// Signs this account's edits; nil without a membership.
    let signer: MemberSigner?
    let role: Role?
    let evidence: JudgingEvidence
    /// The items whose last judged version never counts.
    let refused: Set<ItemID>
    /// True when findings forbid writing until a person or another device has acted.
    let isStopped: Bool
    let lists: SealLists
    let names: [VaultLog.MemberID: String]
    /// All members of the log that were this account, also in former memberships.
    var own: Set<VaultLog.MemberID> = []
    var isRecovering = false

    /// An opened version, with everything that its signature covers.
    struct Signed {
        let body: SignedBody
        let statement: EditStatement
        let title: SecureBytes?
        let edit: SealedBox.Edit
        let generation: GenerationNumber
    }

    var canWrite: Bool { role?.writes ?? false }

    var authorName: String? { signer.flatMap { names[$0.member] } }

    var head: Int64? { Int64(log.head.number.value) }

    // MARK: Opening

    func open(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> OpenedItem {
        opened(try signed(content, id))
    }

    private func opened(_ signed: Signed) -> OpenedItem {
        let title = signed.title.map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
        let author = signed.body.author
        return OpenedItem(
            item: PlainItem(title: title, body: signed.body.content), edit: signed.edit,
            author: ItemAuthor(
                member: author.bytes, name: names[author] ?? "member", isOwn: author == signer?.member))
    }

    /// Opens a version, and checks that title and body are of one edit. The signature is not checked.
    func signed(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> Signed {
        guard content.format == SealedBox.format else { throw .malformed }
        let (key, generation) = try key(of: content.body.bytes)
        let opened = try SealedBox.open(content.body.bytes, at: place(.vaultBody, id, content.collection), with: key)
        var title: SecureBytes?
        if let sealed = content.title {
            let part = try SealedBox.open(sealed.bytes, at: place(.vaultTitle, id, content.collection), with: key)
            guard part.edit == opened.edit else { throw .notAuthentic }
            title = part.content
        }
        guard let body = SignedBody(opened.content),
            let statement = statement(id, content.collection, opened.edit, title, body.content)
        else { throw .malformed }
        return Signed(body: body, statement: statement, title: title, edit: opened.edit, generation: generation)
    }

    private func statement(
        _ id: ItemID, _ collection: String, _ edit: SealedBox.Edit, _ title: SecureBytes?, _ body: SecureBytes
    ) -> EditStatement? {
        guard let number = EditNumber(edit.number), let previous = EditHash(edit.previous) else { return nil }
        return EditStatement(
            item: VaultItemID(id), collection: collection, number: number, previous: previous, title: title, body: body)
    }

    /// Returns the key that sealed bytes name.
    private func key(of sealed: [UInt8]) throws(SealedBox.Failure) -> (DataKey, GenerationNumber) {
        let keyID = try SealedBox.keyID(of: sealed)
        guard let id = VaultKeyID(keyID.bytes), let number = log.generation(withKey: id)?.number,
            let key = keys[number], let dataKey = DataKey(key.bytes)
        else { throw .unknownKey }
        return (dataKey, number)
    }

    private func place(_ part: SealedBox.Part, _ item: ItemID, _ collection: String) -> SealedBox.Place {
        SealedBox.Place(part, account: AccountID(id.uuid), item: item, collection: collection)
    }

    // MARK: Judging

    /// Decides if a version counts. Nothing stops a sync: a version that does not count is put aside.
    func judge(
        _ version: ItemState, _ content: ItemContent, known: StoredItem?, heldSince: Int64?
    ) -> ItemVerdict {
        let verdict = decide(version, content, known: known, heldSince)
        var isRefused = false
        if case .putAside(let reason) = verdict { isRefused = !reason.mayPass }
        evidence.note(version.id, isRefused: isRefused, isKnown: refused.contains(version.id), id)
        return verdict
    }

    func noteReplaced(_ id: ItemID) {
        evidence.note(id, isRefused: false, isKnown: refused.contains(id), self.id)
    }

    private func decide(
        _ version: ItemState, _ content: ItemContent, known: StoredItem?, _ heldSince: Int64?
    ) -> ItemVerdict {
        guard let signed = try? signed(content, version.id) else { return .unreadable }
        // Honest numbers are far below: each edit has a revision of its own.
        guard signed.edit.number <= SealedBox.Edit.floor(of: version.revision) else {
            return .putAside(PutAsideReason(rawValue: "number"))
        }
        let former = known.flatMap { try? self.signed($0.content, $0.id) }
        let isSame = former.map { hash(of: $0) == hash(of: signed) } ?? false
        // A version that has given way is no predecessor: a member that never accepted it can have an earlier head.
        let replaced = former.flatMap { former in
            isSame || rejection(ofAccepted: former, at: known?.judgedAt).map { !$0.isOpen } ?? false ? nil : former
        }
        let cut = log.cut(of: signed.body.author, at: signed.body.head.number)
        let isHeld = cut.map { cut in
            isSame && (known?.judgedAt ?? .max) < Int64(cut.value)
                || heldSince.map { $0 < Int64(cut.value) } ?? false
        }
        do throws(EditRejection) {
            try log.check(
                signed.body, signed.statement, signed.generation, replacing: replaced?.body.head,
                EditEvidence(isHeld: isHeld ?? isSame, lists: lists.byDigest))
            return .accepted(opened(signed))
        } catch {
            let author = signed.body.author
            guard error == .fork || error == .unknownHead else {
                return .putAside(PutAsideReason(rawValue: error.rawValue))
            }
            let isSigned = log.hasSigned(signed.body, signed.statement)
            if isSigned { evidence.add(signed.body.head, by: author, id) }
            let isProven = isSigned && log.members[author]?.role?.writes ?? false
            return .putAside(
                error == .unknownHead && !isProven ? .unprovenHead : PutAsideReason(rawValue: error.rawValue))
        }
    }

    // MARK: Edits

    private func hash(of signed: Signed) -> EditHash {
        signed.statement.hash(log.vault, signed.body.author, signed.body.head)
    }

    func hash(of content: ItemContent, _ id: ItemID) -> [UInt8]? {
        (try? signed(content, id)).map { hash(of: $0).bytes }
    }

    func isSameEdit(_ version: ItemContent, as known: ItemContent, _ id: ItemID) -> Bool {
        guard let hash = hash(of: version, id) else { return false }
        return hash == self.hash(of: known, id)
    }

    /// Returns the mark of an edit in lists, with its author's head; nil for one that does not open.
    func mark(of content: ItemContent, _ id: ItemID) -> (author: VaultLog.MemberID, head: EntryNumber, mark: EditMark)?
    {
        guard let signed = try? signed(content, id) else { return nil }
        return (signed.body.author, signed.body.head.number, signed.statement.mark(log.vault, signed.body))
    }

    /// Returns the mark of a version that only the missing seal of its author keeps from counting; nil for another
    /// one, and for one that the known version follows.
    func markAwaitingSeal(
        of version: ItemState, by author: VaultLog.MemberID, known: StoredItem?
    ) -> EditMark? {
        guard !version.isChunk, let content = version.content, let signed = try? signed(content, version.id),
            signed.body.author == author, log.cut(of: author, at: signed.body.head.number) != nil,
            signed.edit.number <= SealedBox.Edit.floor(of: version.revision)
        else { return nil }
        let known = known.flatMap { $0.isSealed || !stillCounts($0) ? nil : $0 }
        // A server can show an earlier edit again.
        if let known, signed.edit.number <= known.edit { return nil }
        let former = known.flatMap { try? self.signed($0.content, $0.id) }
        do throws(EditRejection) {
            try log.check(
                signed.body, signed.statement, signed.generation, replacing: former?.body.head,
                EditEvidence(isHeld: true, lists: lists.byDigest))
            return signed.statement.mark(log.vault, signed.body)
        } catch {
            return nil
        }
    }

    // MARK: Sealing

    func seal(
        _ item: PlainItem, _ id: ItemID, collection: String, _ edit: SealedBox.Edit
    ) throws(SealedBox.Failure) -> ItemContent {
        guard canWrite, let signer else { throw .unknownKey }
        let title = item.title.map { SecureBytes(copying: $0.utf8) }
        guard let statement = statement(id, collection, edit, title, item.body),
            let body = try? SignedBody(item.body, statement, by: signer, log.head)
        else { throw .malformed }
        return try seal(body, title, id, collection, edit)
    }

    private func seal(
        _ body: SignedBody, _ title: SecureBytes?, _ id: ItemID, _ collection: String, _ edit: SealedBox.Edit
    ) throws(SealedBox.Failure) -> ItemContent {
        guard let key = presentKey else { throw .unknownKey }
        var sealedTitle: [UInt8]?
        if let title {
            sealedTitle = try SealedBox.seal(title, edit, at: place(.vaultTitle, id, collection), with: key)
        }
        let sealedBody = try SealedBox.seal(body.bytes, edit, at: place(.vaultBody, id, collection), with: key)
        return ItemContent(collection: collection, format: SealedBox.format, title: sealedTitle, body: sealedBody)
    }

    private var presentKey: DataKey? { keys[log.currentGeneration.number].flatMap { DataKey($0.bytes) } }

    /// Returns the same edit under the present key. Author, head and signature stay.
    func renewed(_ content: ItemContent, _ id: ItemID, from old: any ItemSealing) -> ItemContent? {
        guard let known = try? (old as? VaultSealing ?? self).signed(content, id) else { return nil }
        return try? seal(known.body, known.title, id, content.collection, known.edit)
    }

    func isOutdated(_ content: ItemContent) -> Bool {
        guard let key = try? SealedBox.keyID(of: content.body.bytes) else { return false }
        return key.bytes != log.currentGeneration.keyID.bytes
    }

    func isUnderUnknownKey(_ content: ItemContent) -> Bool {
        do throws(SealedBox.Failure) { _ = try key(of: content.body.bytes) } catch { return error == .unknownKey }
        return false
    }

    func namesUnknownEntry(_ content: ItemContent, _ id: ItemID) -> Bool {
        guard content.collection != Attachment.chunkCollection, let signed = try? signed(content, id) else {
            return false
        }
        return log.place(of: signed.body.head) == .unknown
    }

    func needsEntries(_ content: ItemContent, _ reason: PutAsideReason?) -> Bool {
        if let reason { return reason == .unprovenHead }
        guard content.format == SealedBox.format, let key = try? SealedBox.keyID(of: content.body.bytes) else {
            return false
        }
        return VaultKeyID(key.bytes).flatMap { log.generation(withKey: $0) } == nil
    }

    // MARK: Chunks

    /// Returns the name of a chunk under the key of the present generation.
    func chunkID(_ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> ItemID {
        guard let key = keys[log.currentGeneration.number] else {
            // Without the key nothing is sealed either.
            return .random()
        }
        return Attachment.chunkID(attachment, index, content, with: key.chunkIDKey)
    }

    /// Accepts the name under the key of each generation: the signed manifest names the chunk.
    func isChunkID(_ id: ItemID, _ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> Bool {
        keys.numbers.reversed().contains { number in
            keys[number].map { Attachment.chunkID(attachment, index, content, with: $0.chunkIDKey) == id } ?? false
        }
    }

    func sealChunk(_ content: SecureBytes, _ id: ItemID) throws(SealedBox.Failure) -> ItemContent {
        guard canWrite, let key = presentKey else { throw .unknownKey }
        let body = try SealedBox.seal(
            content, .first, at: place(.vaultChunk, id, Attachment.chunkCollection), with: key)
        return ItemContent(collection: Attachment.chunkCollection, format: SealedBox.format, body: body)
    }

    func openChunk(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> SecureBytes {
        guard content.format == SealedBox.format else { throw .malformed }
        let (key, _) = try key(of: content.body.bytes)
        return try SealedBox.open(
            content.body.bytes, at: place(.vaultChunk, id, Attachment.chunkCollection), with: key
        ).content
    }

    /// The names of imported copies depend on the first key, so that all members import a document once.
    func documentKey() throws(VaultError) -> SecureBytes {
        guard let key = keys[.first]?.bytes else { throw .shared(.keyMissing) }
        return HKDF.deriveKey(from: key, info: SealingLabels.documentID.utf8)
    }
}

/// Unsent edits, and versions whose verdict may change with the log.
extension VaultSealing {
    var canSeal: Bool { canWrite && signer != nil && keys[log.currentGeneration.number] != nil }

    /// During a recovery, members put back entries that can give other items and roles.
    var canSweep: Bool { role == .manager && canSeal && !isStopped && !isRecovering }

    /// A digest of the head, the known keys, the lists, and this account's member.
    var stamp: [UInt8]? {
        var hash = SHA256.Incremental()
        var parts: [[UInt8]] = [log.head.hash.bytes, signer?.member.bytes ?? [], [canWrite ? 1 : 0]]
        parts += keys.numbers.map(\.value.bigEndianBytes)
        parts += lists.byDigest.keys.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
        for part in parts {
            hash.update(UInt64(part.count).bigEndianBytes)
            hash.update(part)
        }
        return hash.finalize().bytes
    }

    /// An edit of this member that the log has not cut off stays as it is under the present key. Another own edit is
    /// signed again at the present head. An accepted edit of another member keeps its author and its signature.
    func unsentForm(of content: ItemContent, _ id: ItemID, wasSent: Bool) -> UnsentForm {
        guard canSeal, let signer, let signed = try? signed(content, id) else { return .none }
        let (author, head) = (signed.body.author, signed.body.head)
        let isUnderPresentKey = signed.generation == log.currentGeneration.number
        if author == signer.member {
            let stands = log.place(of: head) == .known && log.cut(of: author, at: head.number) == nil
            if stands, isUnderPresentKey { return .present }
        } else if rejection(of: signed, isHeld: !own.contains(author)) == nil {
            if isUnderPresentKey { return .present }
            return renewed(content, id, from: self).map { .other($0, edit: signed.edit.number) } ?? .none
        } else if !own.contains(author) {
            return .none
        }
        // Bytes that the server may have are replaced by a later edit.
        let edit = wasSent ? next(signed.edit, after: content, id) : signed.edit
        guard let opened = try? open(content, id).item,
            let sealed = try? seal(opened, id, collection: content.collection, edit)
        else { return .none }
        return .other(sealed, edit: edit.number)
    }

    func rejection(of item: StoredItem) -> PutAsideReason? {
        // A version whose key is missing was accepted with it. Only a cut changes a verdict.
        (try? signed(item.content, item.id)).flatMap { rejection(ofAccepted: $0, at: item.judgedAt) }
    }

    private func rejection(ofAccepted signed: Signed, at judgedAt: Int64?) -> PutAsideReason? {
        guard log.place(of: signed.body.head) == .known,
            let cut = log.cut(of: signed.body.author, at: signed.body.head.number)
        else { return nil }
        return rejection(of: signed, isHeld: (judgedAt ?? .max) < Int64(cut.value))
    }

    func rejection(ofChange content: ItemContent, _ id: ItemID) -> PutAsideReason? {
        guard let signed = try? signed(content, id), !own.contains(signed.body.author) else { return nil }
        return rejection(of: signed, isHeld: true)
    }

    func judgedAt(ofSent content: ItemContent, _ id: ItemID) -> Int64? {
        guard let head, let signed = try? signed(content, id), !own.contains(signed.body.author),
            let cut = log.cut(of: signed.body.author, at: signed.body.head.number)
        else { return head }
        return min(head, Int64(cut.value) - 1)
    }

    var hasSealLists: Bool { !lists.byDigest.isEmpty }

    private func rejection(of signed: Signed, isHeld: Bool) -> PutAsideReason? {
        let evidence = EditEvidence(isHeld: isHeld, lists: lists.byDigest)
        do throws(EditRejection) {
            try log.check(signed.body, signed.statement, signed.generation, evidence)
            return nil
        } catch {
            return PutAsideReason(rawValue: error.rawValue)
        }
    }
}
