import SalternTesting

@testable import SalternClient

/// The vault as the model's devices see it: what one does, all have at once.
final class ModelVault {
    var remote: [ItemID: RemoteFile] = [:]
    var buried: Set<ItemID> = []
    private var revision: Int64 = 0
    private var random = SeededGenerator(seed: 7)

    func write(_ id: ItemID?, _ path: FolderPath, _ content: FileContent) -> (ItemID, ItemStamp) {
        revision += 1
        let id = id ?? .random(using: &random)
        let stamp = ItemStamp(revision: revision)
        remote[id] = RemoteFile(path: path, content: content, stamp: stamp)
        buried.remove(id)
        return (id, stamp)
    }

    func delete(_ id: ItemID) {
        remote[id] = nil
        buried.insert(id)
    }
}

/// A folder without a disk: carries out what is decided, in memory.
struct ModelDevice {
    let name: String
    var files: [FolderPath: FileContent] = [:]
    var known: [ItemID: KnownFile] = [:]
    var isWalkComplete = true
    var foldsCase = false

    init(_ name: String) { self.name = name }

    func view(_ vault: ModelVault) -> FolderView {
        FolderView(
            known: known, local: files, remote: vault.remote, buried: vault.buried, isWalkComplete: isWalkComplete,
            foldsCase: foldsCase, device: name)
    }

    /// Does what is decided, until nothing is left.
    /// - Parameter limit: After so many steps it is stopped.
    /// - Returns: Whether it has come to an end.
    mutating func settle(_ vault: ModelVault, limit: Int = .max) -> Bool {
        var left = limit
        for _ in 0..<64 {
            let actions = FolderDecision.decide(view(vault))
            if actions.isEmpty { return true }
            for action in actions {
                if left == 0 { return false }
                left -= 1
                carryOut(action, vault)
            }
        }
        return false
    }

    mutating func carryOut(_ action: FolderAction, _ vault: ModelVault) {
        switch action {
        case .note(let id, let path, let content):
            known[id] = KnownFile(path: path, content: content, stamp: vault.remote[id]?.stamp)
        case .forget(let id): known[id] = nil
        case .upload(let path, let content, let id):
            let (id, stamp) = vault.write(id, path, content)
            known[id] = KnownFile(path: path, content: content, stamp: stamp)
        case .download(let id, let path, let over):
            guard files[path] == over, isRoom(path), let remote = vault.remote[id] else { return }
            files[path] = remote.content
            known[id] = KnownFile(
                path: path, content: remote.content, stamp: remote.path == path ? remote.stamp : nil)
        case .moveHere(let id, let from, let to, let content):
            guard files[from] == content, files[to] == nil else { return }
            files[from] = nil
            guard isRoom(to) else { return files[from] = content }
            files[to] = content
            known[id]?.path = to
            known[id]?.stamp = nil
        case .moveThere(let id, let path, let isHere):
            guard let remote = vault.remote[id] else { return }
            _ = vault.write(id, path, remote.content)
            if isHere {
                known[id]?.path = path
                known[id]?.stamp = nil
            }
        case .deleteHere(let id, let path, let content):
            guard files[path] == content else { return }
            files[path] = nil
            known[id] = nil
        case .deleteThere(let id):
            vault.delete(id)
            known[id] = nil
        case .mergeThere(let id): vault.delete(id)
        case .moveAside(let from, let to, let content):
            guard files[from] == content, files[to] == nil else { return }
            files[from] = nil
            files[to] = content
        }
    }

    /// Whether no file is where a folder has to be, and no folder where the file goes.
    func isRoom(_ path: FolderPath) -> Bool {
        path.folders.allSatisfy { files[$0] == nil } && !files.keys.contains { $0.folders.contains(path) }
    }
}
