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

/// How the rounds of watched folders share a store that other processes use, too.
struct StoreLending {
    /// Rounds that use the store.
    var users = 0
    /// Those of them that have stopped where another process can have it.
    var resting = 0
    /// Whether one of them lends the store, or waits until it comes back.
    var isExchanging = false
    /// How often the store has come back.
    var returns = 0
    /// How often another process had written to it by then.
    var outsideWrites = 0
    /// The state of the store's file when it was lent.
    var file: [Int] = []
}

/// A store that other processes use between the rounds of folders that are watched, and within long ones.
///
/// A round stops before each step while a process waits for the store. When all rounds of this process have stopped or ended,
/// one of them lends the store and takes it back behind the processes that wait, and all go on.
extension Vault {
    private static let pause = Duration.milliseconds(20)

    /// The first round of a folder that is watched uses the store as it is.
    func beginLending() {
        beforePiece = { vault throws(VaultError) in _ = try await vault.giveWay() }
    }

    /// Takes the store for a round, behind the processes that wait for it or use it. Each call that returns needs
    /// ``endStoreUse()``.
    /// - Parameter isPatient: False where a process that uses the store for long is an error.
    /// - Returns: How often another process has written to the store so far.
    /// - Throws: ``VaultError/locked`` when another process has logged out or has locked the vault.
    func reclaimStore(isPatient: Bool = true) async throws(VaultError) -> Int {
        lending.users += 1
        do throws(VaultError) {
            if mustRest { try await rest(isPatient) }
            return lending.outsideWrites
        } catch {
            lending.users -= 1
            throw error
        }
    }

    /// Lets the processes that wait for the store have it, within a round.
    /// - Returns: How often another process has written to the store so far.
    func giveWay() async throws(VaultError) -> Int {
        if lending.users > 0, mustRest { try await rest(true) }
        return lending.outsideWrites
    }

    /// Whether a round stops before its next step.
    private var mustRest: Bool {
        store.isLent || lending.isExchanging || StoreTicket.isAwaited(settings.folder)
    }

    /// Waits until the other processes have had the store, or none waits any more.
    private func rest(_ isPatient: Bool) async throws(VaultError) {
        let wasOpen = opened != nil
        let returns = lending.returns
        lending.resting += 1
        defer { lending.resting -= 1 }
        while store.isLent || lending.returns == returns {
            if !lending.isExchanging {
                guard mustRest else { break }
                if store.isLent || lending.resting == lending.users && !serverLock.isLocked {
                    do throws(VaultError) { try await exchange() } catch .store(.inUse) where isPatient { continue }
                    break
                }
            }
            do { try await Task.sleep(for: Self.pause) } catch { throw .cancelled }
        }
        if wasOpen && opened == nil { throw .locked }
    }

    /// Lends the store, and takes it back behind the processes that wait for it.
    private func exchange() async throws(VaultError) {
        lending.isExchanging = true
        defer { lending.isExchanging = false }
        if !store.isLent { lend() }
        let wasWritten: Bool
        do {
            wasWritten = try await StoreTicket.waiting(in: settings.folder) {
                let isSame = self.lending.file == StoreFile.state(in: self.settings.folder)
                do { try self.store.takeBack() } catch { throw VaultError(ofStore: error) }
                return !isSame
            }
        } catch let error as VaultError {
            throw error
        } catch {
            throw .cancelled
        }
        lending.returns += 1
        guard wasWritten else { return }
        lending.outsideWrites += 1
        try reopen()
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
        lending.users -= 1
        guard lending.users == 0 else { return }
        await serverLock.lock()
        defer { serverLock.unlock() }
        if lending.users == 0 && attaching.isEmpty { lend() }
    }

    func lend() {
        store.lend()
        lending.file = StoreFile.state(in: settings.folder)
    }
}
