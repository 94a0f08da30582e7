public import Cryptography

/// The reason for which an edit does not count. The device puts it aside and reports it; no reason stops a sync.
public enum EditRejection: String, Error, Hashable, CaseIterable, Sendable {
    /// The log does not have the head yet. Fetch the log once and check again. If the head is still unknown, the
    /// author's device has another history.
    case unknownHead
    /// The log has another entry in the place of the head: the server shows two histories.
    case fork
    /// The author was no member at the head.
    case unknownAuthor
    /// The author was a reader at the head.
    case notPermitted
    /// The signature is not the author's, or belongs to another content or place.
    case wrongSignature
    /// The edit is sealed under a generation before the one that was current at its head.
    case oldGeneration
    /// The version that the edit replaces has a later head.
    case headWentBack
    /// The author was cut off after the head, and no manager has listed its edits yet. Only edits that the device held
    /// before count.
    case awaitsSeal
    /// Managers have listed edits of the author, and none of their lists contains this one.
    case notListed
    /// A list is missing that may contain the edit.
    case listMissing
}

/// The knowledge of a device about an edit beside the log.
public struct EditEvidence: Sendable {
    /// True when the device accepted the edit before its log had the entry that cut the author off.
    public var isHeld: Bool
    /// The lists that the device has, by digest.
    private let lists: [SHA256Digest: SealList]

    /// Creates the evidence.
    public init(isHeld: Bool = false, lists: [SealList] = []) {
        self.init(isHeld: isHeld, lists: Self.byDigest(lists))
    }

    /// Creates the evidence with the result of ``byDigest(_:)``, which many checks can use.
    public init(isHeld: Bool, lists: [SHA256Digest: SealList]) {
        self.isHeld = isHeld
        self.lists = lists
    }

    /// Returns lists by their digests.
    public static func byDigest(_ lists: [SealList]) -> [SHA256Digest: SealList] {
        Dictionary(lists.map { ($0.digest, $0) }) { first, _ in first }
    }

    /// Returns the list of a seal; nil when the device does not have it.
    func list(of seal: Seal) -> SealList? { lists[seal.digest].flatMap { $0.isList(of: seal) ? $0 : nil } }
}

extension MembershipLog {
    /// Checks that an edit counts.
    /// - Parameters:
    ///   - body: The opened body.
    ///   - statement: The content and place of the edit, as the device opened them.
    ///   - generation: The generation under which body and title are sealed.
    ///   - replaced: The head of the last accepted version of the item.
    ///   - evidence: The knowledge beside the log.
    /// - Returns: The hash of the edit.
    @discardableResult public func check(
        _ body: SignedBody, _ statement: EditStatement, _ generation: GenerationNumber, replacing replaced: Head? = nil,
        _ evidence: EditEvidence = EditEvidence()
    ) throws(EditRejection) -> EditHash {
        switch place(of: body.head) {
        case .unknown: throw .unknownHead
        case .diverged: throw .fork
        case .known: break
        }
        let number = body.head.number
        guard let author = members[body.author], let role = author.role(at: number), let keys = author.keys(at: number)
        else { throw .unknownAuthor }
        guard role.writes else { throw .notPermitted }
        guard body.signature.isValid(statement.text(vault, body.author, body.head), by: keys.verifying) else {
            throw .wrongSignature
        }
        guard generation >= self.generation(at: number).number else { throw .oldGeneration }
        if let replaced, number < replaced.number { throw .headWentBack }
        if let cut = author.cut(at: number) {
            try checkCut(author.id, cut, statement.item, statement.mark(vault, body), evidence)
        }
        return statement.hash(vault, body.author, body.head)
    }

    /// Checks an edit of an author that an entry cut off after the edit's head.
    private func checkCut(
        _ author: MemberID, _ cut: EntryNumber, _ item: VaultItemID, _ mark: EditMark, _ evidence: EditEvidence
    ) throws(EditRejection) {
        let seals = seals(of: author, after: cut)
        guard !seals.isEmpty else {
            guard evidence.isHeld else { throw .awaitsSeal }
            return
        }
        var isComplete = true
        for each in seals {
            guard let list = evidence.list(of: each.seal) else {
                isComplete = false
                continue
            }
            if list.edits[item] == mark { return }
        }
        throw isComplete ? .notListed : .listMissing
    }

    /// Returns true when the last known key of its author has signed an edit. Its head need not be in the log: then the
    /// author's device has another history.
    public func hasSigned(_ body: SignedBody, _ statement: EditStatement) -> Bool {
        guard let author = members[body.author] else { return false }
        return body.signature.isValid(statement.text(vault, body.author, body.head), by: author.current.verifying)
    }

    /// Returns the entry that cut off the edits of an author whose head is `number`; nil when they count.
    public func cut(of author: MemberID, at number: EntryNumber) -> EntryNumber? { members[author]?.cut(at: number) }
}
