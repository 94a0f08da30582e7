import Foundation
import Synchronization

/// What a person wrote and has not replaced or deleted where they could see it, and how they do it.
final class WrittenFiles: Sendable {
    private struct State {
        var leaves: Set<String> = []
        var count = 0
        /// Somebody who saw it has written another in its place.
        var replaced: Set<String> = []
        var deleted: [String] = []
        var trace: [String] = []
    }

    private let state = Mutex(State())

    var leaves: Set<String> { state.withLock { $0.leaves } }

    /// What was done, for whoever looks into a failure.
    var trace: String { state.withLock { $0.trace.joined(separator: "\n") } }

    func note(_ device: FolderDevice, _ what: String) {
        let files = device.files().sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.prefix(20))" }
        state.withLock { $0.trace.append("\(device.device.name) \(what) -> \(files.joined(separator: ", "))") }
    }

    private func version(over seen: String?, isLong: Bool) -> String {
        state.withLock { state in
            state.count += 1
            let text = "version \(state.count)" + (isLong ? String(repeating: ".", count: 600_000) : "")
            if let seen {
                state.leaves.remove(seen)
                state.replaced.insert(seen)
            }
            state.leaves.insert(text)
            return text
        }
    }

    /// One edit: what cannot be done, because of a folder in the way, is not done.
    func edit(_ device: FolderDevice, _ names: [String], _ kind: Int, _ seed: UInt64) {
        defer { note(device, "edit \(kind)") }
        var random = SeededRandom(state: seed)
        let present = device.files().sorted { $0.key < $1.key }
        let name = names.randomElement(using: &random) ?? "a"
        switch kind {
        case 0..<35:
            guard !FileManager.default.fileExists(atPath: device.url(name).path) else { return }
            let text = version(over: nil, isLong: kind == 0)
            do { try device.write(text, to: name) } catch { state.withLock { _ = $0.leaves.remove(text) } }
        case 35..<65:
            guard let (path, seen) = present.randomElement(using: &random) else { return }
            let text = version(over: seen, isLong: kind == 35)
            guard (try? device.write(text, to: path)) != nil else { return }
        case 65..<78:
            guard let (path, seen) = present.randomElement(using: &random), (try? device.remove(path)) != nil else {
                return
            }
            state.withLock { state in
                state.leaves.remove(seen)
                state.deleted.append(seen)
            }
        case 78..<90:
            guard let (path, _) = present.randomElement(using: &random) else { return }
            try? device.rename(path, name)
        default:
            // What was deleted is wanted again.
            guard let text = state.withLock({ $0.deleted.popLast() }),
                !FileManager.default.fileExists(atPath: device.url(name).path),
                (try? device.write(text, to: name)) != nil
            else { return }
            // In a folder that still knows it under another name it is that file, renamed: what replaced it comes over it.
            state.withLock { if !$0.replaced.contains(text) { $0.leaves.insert(text) } }
        }
    }
}
