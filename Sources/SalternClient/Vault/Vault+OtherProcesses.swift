internal import Foundation

/// Several processes of an app with one store: a share extension, a widget.
///
/// One process at a time has the store. A process that opens a vault waits for ``VaultSettings/storePatience``, in the order in
/// which the processes have come. It has the store until its last reference to the vault goes. The app itself lends the
/// store while it does not need it.
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
/// All processes need the same ``VaultSettings/folder`` (an app group's container) and a ``VaultSettings/deviceKey`` that each
/// of them can read (a shared keychain access group).
extension Vault {
    /// Lets other processes use the store until ``takeBackStore()``. Meanwhile calls that read or write it throw
    /// ``VaultError/store(_:)`` with ``StoreError/inUse``. A call that is repeated while the store is lent does nothing.
    ///
    /// ```swift
    /// case .background: try await vault.lendStore()
    /// ```
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` while an attachment is being sent or a folder is in sync:
    ///   nothing is lent then. A sync that is under way comes to its end first.
    public func lendStore() async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        if store.isLent || store.isClosed { return }
        guard lending.users == 0, attaching.isEmpty else { throw .store(.inUse) }
        lentStamps = try stored { try store.stamps() }
        lend()
    }

    /// Takes the store back, after the processes that wait for it or use it. ``changes()`` reports what they have changed.
    /// A call without ``lendStore()`` before it does nothing.
    ///
    /// ```swift
    /// case .active: try await vault.takeBackStore()
    /// ```
    /// - Returns: Whether another process has written to the store.
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` when no process has given the store back for
    ///   30 seconds: it is still lent then. ``VaultError/locked`` when another process has locked or signed out the vault.
    @discardableResult
    public func takeBackStore() async throws(VaultError) -> Bool {
        if !store.isLent { return false }
        let before = lending.outsideWrites
        let wasWritten = try await reclaimStore(isPatient: false) != before
        lending.users -= 1
        if wasWritten { notifyOtherProcesses() }
        return wasWritten
    }

    /// Reports the items that another process has changed.
    private func notifyOtherProcesses() {
        guard let stamps = try? store.stamps() else { return }
        let ids = Set(stamps.keys).union(lentStamps.keys).filter { stamps[$0] != lentStamps[$0] }
        lentStamps = [:]
        // What the other process has not sent is sent from here, too.
        if !ids.isEmpty { notify(Set(ids)) }
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
}
