public import Observation

/// The state of a vault for a SwiftUI view. The model follows the vault until the vault is signed out or the model is
/// released.
///
/// ```swift
/// struct Root: View {
///     let model: VaultModel  // made with `await VaultModel(vault)`
///
///     var body: some View {
///         Group {
///             if model.isLocked {
///                 PasswordField { typed in Task { await model.perform { try await model.vault.unlock(Password(typed)) } } }
///             } else {
///                 NotesList(notes: CollectionModel(model.vault.collection("notes", of: Note.self), sorted: .by(\.text)))
///             }
///         }
///         .task { await model.keepInSync() }  // goes on after each log-in and each unlocking
///         .alert(isPresented: Binding { model.error != nil } set: { _ in model.error = nil }) {
///             Alert(title: Text(model.error?.localizedDescription ?? ""))
///         }
///     }
/// }
/// ```
@MainActor @Observable public final class VaultModel {
    /// The vault that the model shows.
    @ObservationIgnored public let vault: Vault
    /// The state of the vault: locked, signed out, or the result of its last sync.
    public private(set) var state: SyncState
    /// The number of changes that the server has not confirmed, including those of shared vaults.
    public private(set) var unsentCount: Int
    /// The notices of the account. ``Vault/forget(_:)`` removes one. ``SharedVault/items`` has those of a shared vault.
    public private(set) var notices: [Notice]
    /// The error of the last failed action. Set it to nil to remove it from the screen.
    public var error: (any Error)?
    @ObservationIgnored private var following: Task<Void, Never>?

    /// True while the password is needed.
    public var isLocked: Bool { if case .locked = state { true } else { false } }
    /// True after a sign-out. The vault cannot be used again.
    public var isSignedOut: Bool { if case .signedOut = state { true } else { false } }
    /// True while a sync is under way.
    public var isSyncing: Bool { if case .syncing = state { true } else { false } }

    /// Creates a model that shows the vault from the beginning.
    ///
    /// ```swift
    /// guard let vault = try await Vault.resume(settings) else { return showLogin() }
    /// let model = await VaultModel(vault)
    /// ```
    public init(_ vault: Vault) async {
        self.vault = vault
        // The subscription begins before the state is read, so that no later change is missed.
        let nudges = await vault.nudges()
        (state, unsentCount, notices) = await vault.overview()
        following = Task { [weak self] in
            for await _ in nudges {
                guard let self else { return }
                await self.reload()
            }
            await self?.reload()
        }
    }

    deinit { following?.cancel() }

    private func reload() async { (state, unsentCount, notices) = await vault.overview() }

    /// Calls a function of the app or of the kit, and stores its error in ``error``. A cancelled task is no error.
    ///
    /// ```swift
    /// Button("Sync") { Task { await model.perform { try await model.vault.sync() } } }
    /// ```
    /// - Returns: True when the function has succeeded.
    @discardableResult
    public func perform(_ action: () async throws -> Void) async -> Bool {
        do {
            try await action()
            return true
        } catch {
            if !error.isCancelledTask { self.error = error }
            return false
        }
    }

    /// Keeps the vault in sync (``Vault/keepInSync()``) until the task is cancelled or the vault is signed out.
    ///
    /// - While the vault is locked the call waits for ``Vault/unlock(_:)``.
    /// - When the session has ended it waits for ``Vault/logInAgain(password:code:userid:restoringKeyring:passkey:)``.
    ///   Then the ``state`` is ``SyncState/failed(_:next:)`` with ``VaultError/sessionEnded``.
    /// - Another error that needs the user, such as an untrusted key, ends the call, and is in ``error``.
    ///
    /// ```swift
    /// .task { await model.keepInSync() }
    /// ```
    public func keepInSync() async {
        while !Task.isCancelled {
            let openings = await vault.openings
            do throws(VaultError) {
                return try await vault.keepInSync()
            } catch {
                switch error {
                case .locked: break
                case .sessionEnded, .keyringUnusable, .keyringReplaced: self.error = error
                default:
                    if !error.isCancellation { self.error = error }
                    return
                }
            }
            guard await vault.waitForOpening(after: openings) else { return }
        }
    }
}

extension Error {
    /// True for the error of a cancelled task.
    fileprivate var isCancelledTask: Bool {
        switch self {
        case let error as VaultError: error.isCancellation
        case let error as TransportError: error == .cancelled
        default: self is CancellationError
        }
    }
}
