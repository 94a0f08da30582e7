internal import Foundation

/// A store that other processes use between the rounds of a folder that is watched.
extension Vault {
    /// The first round of a folder that is watched uses the store as it is.
    func beginLending() {
        beforePiece = { vault throws(VaultError) in _ = try await vault.giveWay() }
    }

    /// Takes the store back for a round.
    /// - Returns: Whether another process has written to it.
    /// - Throws: ``VaultError/locked`` when another process has logged out or has locked the vault.
    func reclaimStore() async throws(VaultError) -> Bool {
        storeUsers += 1
        if !store.isLent { return false }
        let wasWritten: Bool
        do {
            wasWritten = try await StoreTicket.waiting(in: settings.folder) {
                // Another round of this process may have waited, too.
                guard self.store.isLent else { return true }
                do { return try self.store.takeBack() } catch { throw VaultError(ofStore: error) }
            }
            if wasWritten {
                opened = nil
                _ = try resume()
            }
        } catch let error as VaultError {
            storeUsers -= 1
            throw error
        } catch {
            storeUsers -= 1
            throw .unavailable(.transport(.cancelled))
        }
        if opened == nil { throw .locked }
        return wasWritten
    }

    /// Gives the store to other processes, when no round needs it.
    func lendStore() async {
        storeUsers -= 1
        guard storeUsers == 0 else { return }
        await beginTurn()
        defer { endTurn() }
        if storeUsers == 0 && attaching.isEmpty { store.lend() }
    }

    /// Lets the processes that wait for the store have it, within a round.
    /// - Returns: Whether another process has written to it.
    func giveWay() async throws(VaultError) -> Bool {
        guard storeUsers == 1, !hasTurn, StoreTicket.isAwaited(settings.folder) else { return false }
        storeUsers = 0
        store.lend()
        return try await reclaimStore()
    }
}
