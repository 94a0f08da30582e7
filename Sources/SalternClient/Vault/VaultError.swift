/// Why a vault did not do what it should.
public enum VaultError: Error, Sendable {
    /// Userid and password do not belong together.
    case wrongCredentials
    /// The account has a second factor: ask for a code.
    case codeRequired
    /// The code is wrong, too old or was used.
    case wrongCode
    /// The vault is locked: ask for the password. Or it was signed out, and has nothing any more.
    case locked
    /// The session has ended: log in again. Nothing that is stored here is lost.
    case sessionEnded
    /// The server has refused.
    case refused(Problem)
    /// There was no reply, or none that is understood.
    case unavailable(APIError)
    /// The server asked for something that this app does not do; it may have been taken over.
    case untrustworthy(StretchingRule.Refusal)
    /// The userid is not in its canonical form: ask the person whether this is meant.
    case useridNotCanonical(canonical: String)
    /// The server has an account under this userid, but not the keyring of this app, or an older one than is known.
    case keyringUnusable
    /// The server's keyring does not open with the password or the printed code, and one that it has kept does: a session has
    /// replaced it, or a later version of this app has. Ask the person, then repeat the call with `restoringKeyring`.
    case keyringReplaced
    /// The keyring that is known here does not go over the server's older one: it has newer keys, and the password is
    /// another since, so that whoever knows the one of before could open what is new. Sign out after
    /// ``Vault/exportDocuments(to:collection:)``, log in, and ``Vault/importDocuments(from:)``.
    case keyringNotRestorable
    /// A recovery code with a typing error.
    case malformedRecoveryCode
    /// The folder holds the items of another account, and the two are not mixed.
    case otherAccount
    /// Edits that were not sent would be lost.
    case unsentEdits(count: Int)
    /// Many deletions wait for somebody to agree: ``Vault/agreeToDeletions()`` comes first.
    case deletionsHeld
    /// The plan has no room for it, or for so long an item. Nothing was written.
    case noRoom(PlanShortage)
    /// There is no such item.
    case notFound
    /// The source of an attachment threw, or gave another number of bytes than was asked for.
    case sourceFailed
    /// The server does not have a chunk that an attachment's manifest names.
    case missingChunk(ItemID)
    /// The server's bytes of a chunk do not open, or are those of another chunk.
    case damagedChunk(ItemID)
    /// The key in a share's link does not open what was fetched. The fetched share takes another key without another view.
    case wrongShareKey(FetchedShare)
    /// A name that no collection can have: it is not 1 to 32 of `a-z`, `0-9` and `-`, or it is that of attachments' chunks.
    /// Nothing was written.
    case invalidCollection(String)
    /// A file is no whole file of documents. Nothing was imported.
    case invalidDocuments(DocumentFault)
    /// The content cannot be encoded, decoded or sealed.
    case unreadable
    /// The local store.
    case store(StoreError)

    /// True for the error of a call whose task was cancelled: ``unavailable(_:)`` with ``TransportError/cancelled``. What an
    /// attachment has sent under an id of the caller's stays, and is not sent again.
    ///
    /// ```swift
    /// do { _ = try await vault.attach(source, id: id) } catch where !error.isCancellation { show(error) }
    /// ```
    public var isCancellation: Bool {
        if case .unavailable(.transport(.cancelled)) = self { true } else { false }
    }

    /// True when the server has shown another key than the pinned one or an untrusted certificate, asks for what this app does
    /// not do, or when the transport is configured wrongly: a person has to see to it. False where the server cannot be reached.
    ///
    /// ```swift
    /// catch .unavailable where !error.isAboutTrust { showOffline() }
    /// ```
    public var isAboutTrust: Bool {
        switch self {
        case .unavailable(let error): error.isAboutTrust
        case .untrustworthy: true
        default: false
        }
    }

    /// The error of a call whose task was cancelled.
    static var cancelled: VaultError { .unavailable(.transport(.cancelled)) }

    init(ofStore error: any Error) {
        self = error is StoreClosed ? .locked : .store(error as? StoreError ?? .damaged)
    }

    init(_ error: APIError) {
        switch error.code {
        case .wrongCredentials?: self = .wrongCredentials
        case .totpRequired?: self = .codeRequired
        case .wrongTOTP?: self = .wrongCode
        case .unauthenticated?: self = .sessionEnded
        default:
            if case .problem(let problem) = error {
                self =
                    problem.canonical.map { .useridNotCanonical(canonical: $0) }
                    ?? (error.isPassing ? .unavailable(error) : .refused(problem))
            } else {
                self = .unavailable(error)
            }
        }
    }
}
