/// The reason for which an operation of a vault failed.
public enum VaultError: Error, Sendable {
    /// Userid and password do not match.
    case wrongCredentials
    /// The account has a second factor: prompt for a code.
    case codeRequired
    /// The code is wrong, too old or already used.
    case wrongCode
    /// The account has passkeys as a second factor: log in again with `passkey`, or with a code where `orCode` is true.
    case passkeyRequired(orCode: Bool)
    /// The server does not accept the passkey's answer: it is unknown, too old or already used.
    case wrongPasskey
    /// An authenticator did not answer, or its answer is of no use.
    case passkey(PasskeyError)
    /// The vault is locked: prompt for the password. Or it was signed out, and is empty.
    case locked
    /// The session has ended: log in again. No data on this device is lost.
    case sessionEnded
    /// The server has rejected the request.
    case refused(Problem)
    /// No reply arrived, or it is malformed or unexpected.
    case unavailable(APIError)
    /// The server requested something that this app does not support. It may be hostile.
    case untrustworthy(StretchingRule.Refusal)
    /// The userid is not in its canonical form: show that form for confirmation.
    case useridNotCanonical(canonical: String)
    /// The server has an account with this userid, but not the keyring of this app, or an older one than the known one.
    case keyringUnusable
    /// The password or the printed code does not open the server's keyring, but a kept one. A session or a later
    /// version of this app has replaced it. After the user's approval, repeat the call with `restoringKeyring`.
    case keyringReplaced
    /// The known keyring cannot replace the server's older one. It has newer keys, and the password was changed since,
    /// so an earlier password could open new content. Sign out after ``Vault/exportDocuments(to:collection:)``, log in,
    /// and call ``Vault/importDocuments(from:)``.
    case keyringNotRestorable
    /// The recovery code has a typing error.
    case malformedRecoveryCode
    /// The folder contains the items of another account. Accounts are not mixed.
    case otherAccount
    /// Unsent edits would be lost.
    case unsentEdits(count: Int)
    /// Many deletions wait for the user's approval: call ``Vault/agreeToDeletions(in:)`` first.
    case deletionsHeld
    /// The plan has no room for the item, or a lower limit of one item. Nothing was written.
    case noRoom(PlanShortage)
    /// There is no such item.
    case notFound
    /// The source of an attachment threw, or returned another number of bytes than requested.
    case sourceFailed
    /// The server does not have a chunk that an attachment's manifest names.
    case missingChunk(ItemID)
    /// The server's bytes of a chunk cannot be opened, or are those of another chunk.
    case damagedChunk(ItemID)
    /// The key of a share's link does not open the fetched share. Another key can be tried without another view.
    case wrongShareKey(FetchedShare)
    /// The name of a collection is invalid: it is not 1 to 32 of `a-z`, `0-9` and `-`, or it is that of attachments'
    /// chunks. Nothing was written.
    case invalidCollection(String)
    /// The file is not a complete file of documents. Nothing was imported.
    case invalidDocuments(DocumentFault)
    /// The content cannot be encoded, decoded or sealed.
    case unreadable
    /// The local store failed.
    case store(StoreError)
    /// An operation on a shared vault failed.
    case shared(SharedVaultError)

    /// True for the error of a call whose task was cancelled: ``unavailable(_:)`` with ``TransportError/cancelled``.
    /// Chunks of an attachment that were sent under the caller's id stay, and are not sent again.
    ///
    /// ```swift
    /// do { _ = try await vault.attach(source, id: id) } catch where !error.isCancellation { show(error) }
    /// ```
    public var isCancellation: Bool {
        if case .unavailable(.transport(.cancelled)) = self { true } else { false }
    }

    /// True for an error about the server's identity or the configuration, which a person has to correct. The server
    /// has another key than the pinned one or an untrusted certificate, or requests something that this app does not
    /// support. Or the transport's configuration is malformed. False when the server is unreachable.
    ///
    /// ```swift
    /// catch .unavailable where !error.isAboutTrust { showOffline() }
    /// ```
    public var isAboutTrust: Bool {
        switch self {
        case .unavailable(let error): error.isAboutTrust
        case .untrustworthy, .passkey(.foreignSite): true
        default: false
        }
    }

    /// The error of a call whose task was cancelled.
    static var cancelled: VaultError { .unavailable(.transport(.cancelled)) }

    /// Converts an error of the engine of the sync.
    init(ofEngine error: any Error) {
        switch error {
        case let error as VaultError: self = error
        case let error as APIError: self = VaultError(error)
        case is StoreError, is StoreClosed: self = VaultError(ofStore: error)
        case is CancellationError: self = .cancelled
        default: self = .unreadable
        }
    }

    init(ofStore error: any Error) {
        self = error is StoreClosed ? .locked : .store(error as? StoreError ?? .damaged)
    }

    init(_ error: APIError) {
        switch error.code {
        case .wrongCredentials?: self = .wrongCredentials
        case .totpRequired?: self = .codeRequired
        case .wrongTOTP?: self = .wrongCode
        case .wrongPasskey?: self = .wrongPasskey
        case .unauthenticated?: self = .sessionEnded
        default:
            if case .problem(let problem) = error, problem.code == .secondFactorRequired {
                self = .passkeyRequired(orCode: problem.factors?.contains("totp") ?? false)
            } else if case .problem(let problem) = error {
                self =
                    problem.canonical.map { .useridNotCanonical(canonical: $0) }
                    ?? (error.isPassing ? .unavailable(error) : .refused(problem))
            } else {
                self = .unavailable(error)
            }
        }
    }
}

extension VaultError {
    /// True when the cause is only that the plan is full.
    var isForWantOfRoom: Bool {
        if case .noRoom(let shortage) = self { shortage.limit != .waitingBytes } else { isRefusalForWantOfRoom }
    }

    /// True when the server returned this error for a chunk.
    var isRefusalForWantOfRoom: Bool {
        if case .refused(let problem) = self { problem.code == .quotaExceeded } else { false }
    }

    /// True when a later download can continue with the pieces that have arrived.
    var keepsArrived: Bool {
        switch self {
        case .sourceFailed, .noRoom, .missingChunk, .damagedChunk: false
        default: true
        }
    }

    /// The error of a call for a content as a whole: ``unreadable`` instead of the detailed reason.
    var ofContent: VaultError {
        switch self {
        case .sourceFailed, .missingChunk, .damagedChunk: .unreadable
        default: self
        }
    }
}
