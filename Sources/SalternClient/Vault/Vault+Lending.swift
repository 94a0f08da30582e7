internal import Foundation

/// The file of a store.
enum StoreFile {
    /// Returns what is another one when the file was written; one that equals no other where that cannot be said.
    static func state(in folder: URL) -> [Int] {
        let path = folder.appending(path: "store.sqlite").path
        var status = stat()
        // A log that no connection has brought into the file may have any content.
        guard lstat(path + "-wal", &status) != 0, lstat(path, &status) == 0 else { return [.random(in: 0...(.max))] }
        #if canImport(Darwin)
            let modified = status.st_mtimespec
        #else
            let modified = status.st_mtim
        #endif
        return [Int(status.st_ino), Int(status.st_size), Int(modified.tv_sec), Int(modified.tv_nsec)]
    }
}

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
        let wasOpen = opened != nil
        let wasWritten: Bool
        do {
            wasWritten = try await StoreTicket.waiting(in: settings.folder) {
                // Another round of this process may have waited, too.
                guard self.store.isLent else { return true }
                let isSame = self.lentFile == StoreFile.state(in: self.settings.folder)
                do { try self.store.takeBack() } catch { throw VaultError(ofStore: error) }
                return !isSame
            }
            if wasWritten { try reopen() }
        } catch let error as VaultError {
            storeUsers -= 1
            throw error
        } catch {
            storeUsers -= 1
            throw .unavailable(.transport(.cancelled))
        }
        if wasOpen && opened == nil {
            storeUsers -= 1
            throw .locked
        }
        return wasWritten
    }

    /// Goes on with what another process has left in the store.
    private func reopen() throws(VaultError) {
        do throws(VaultError) {
            let isThere = try resume()
            let kept = try keptOpen()
            if !isThere || kept == nil { opened = nil }
        } catch {
            opened = nil
            throw error
        }
    }

    /// Gives the store to other processes, when no round needs it.
    func endStoreUse() async {
        storeUsers -= 1
        guard storeUsers == 0 else { return }
        await beginTurn()
        defer { endTurn() }
        if storeUsers == 0 && attaching.isEmpty { lend() }
    }

    func lend() {
        store.lend()
        lentFile = StoreFile.state(in: settings.folder)
    }

    /// Lets the processes that wait for the store have it, within a round.
    /// - Returns: Whether another process has written to it.
    func giveWay() async throws(VaultError) -> Bool {
        guard storeUsers == 1, !hasTurn, StoreTicket.isAwaited(settings.folder) else { return false }
        storeUsers = 0
        lend()
        return try await reclaimStore()
    }
}
