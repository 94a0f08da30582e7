import SalternTesting

@testable import SalternClient

/// The vault as the model's devices see it: what one does, all have at once.
final class ModelVault {
    var remote: [ItemID: RemoteFile] = [:]
    var buried: Set<ItemID> = []
    private var random = SeededGenerator(seed: 7)

    func newID() -> ItemID { .random(using: &random) }

    /// What a device has done is there for all others at once.
    func take(_ view: FolderView) {
        remote = view.remote
        buried = view.buried
    }
}

/// A folder without a disk: what is decided is carried out by the simulation of dry runs.
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
        var simulation = FolderSimulation(view(vault), newID: vault.newID)
        var report = FolderReport()
        _ = simulation.carryOut(action, &report)
        (files, known) = (simulation.view.local, simulation.view.known)
        vault.take(simulation.view)
    }

    /// Whether no file is where a folder has to be, and no folder where the file goes.
    func isRoom(_ path: FolderPath) -> Bool {
        path.folders.allSatisfy { files[$0] == nil } && !files.keys.contains { $0.folders.contains(path) }
    }
}
