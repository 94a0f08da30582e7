internal import Foundation

/// Several processes of an app with one store: a share extension, a widget.
///
/// One process at a time has the store. A process that opens a vault waits for ``VaultSettings/storePatience``, in the
/// order of arrival. It has the store until the last reference to its vault is released. The app itself lets others use
/// the store while it does not need it.
///
/// ```swift
/// // The app, when it enters the background and the foreground:
/// following.cancel()
/// try await vault.lendStore()
/// …
/// try await vault.takeBackStore()
///
/// // The share extension:
/// settings.storePatience = .seconds(5)
/// guard let vault = try await Vault.resume(settings) else { return askForLogIn() }
/// try await vault.collection("notes", of: Note.self).put(note)
/// ```
///
/// All processes need the same ``VaultSettings/folder`` (an app group's container) and a ``VaultSettings/deviceKey``
/// that each of them can read (a shared keychain access group).
extension Vault {
    /// Lets other processes use the store until ``takeBackStore()``. Until then, calls that read or write it throw
    /// ``VaultError/store(_:)`` with ``StoreError/inUse``. Repeated calls have no effect.
    ///
    /// ```swift
    /// case .background: try await vault.lendStore()
    /// ```
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` while an attachment is being sent or a folder is
    ///   syncing, with nothing changed. A running sync ends first: after an error it repeats no request.
    public func lendStore() async throws(VaultError) {
        try await sharing.lendUntilTakenBack()
    }

    /// Opens the store again, after the processes that wait for it or use it. ``changes()`` reports their changes.
    /// Without an earlier ``lendStore()`` the call has no effect.
    ///
    /// ```swift
    /// case .active: try await vault.takeBackStore()
    /// ```
    /// - Returns: True when another process has written to the store.
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` when no process has released the store for 30
    ///   seconds; it then stays closed. ``VaultError/locked`` when another process has locked or signed out the vault,
    ///   ``VaultError/otherAccount`` when it has logged another account in: the vault is then locked.
    @discardableResult
    public func takeBackStore() async throws(VaultError) -> Bool {
        try await sharing.takeBack()
    }

    /// Opens the store, after other processes that use it.
    static func opening(_ settings: VaultSettings) async throws(VaultError) -> Vault {
        if settings.storePatience <= .zero { return try Vault(settings) }
        do {
            return try await StoreTicket.waiting(in: settings.folder, atMost: settings.storePatience) {
                try Vault(settings)
            }
        } catch {
            throw error as? VaultError ?? .cancelled
        }
    }

    func beginLending() { sharing.begin() }

    func reclaimStore(isPatient: Bool = true) async throws(VaultError) -> Int {
        try await sharing.reclaim(isPatient: isPatient)
    }

    func giveWay() async throws(VaultError) -> Int { try await sharing.giveWay() }

    func endStoreUse() async { await sharing.endUse() }
}
