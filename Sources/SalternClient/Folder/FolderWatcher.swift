internal import CPlatform
internal import Dispatch
internal import Foundation

/// Hears of changes beneath a folder from the kernel (inotify).
///
/// `@unchecked Sendable` is safe: all that changes is changed on its queue.
final class FolderWatcher: @unchecked Sendable {
    private let queue: DispatchQueue
    /// Nil when the kernel has no room for another watcher of this person.
    private let hearing: Hearing?
    private let root: String
    private let system = DiskFolders()
    private let calls: FolderWatchCalls

    private struct Hearing {
        let descriptor: Descriptor
        let source: any DispatchSourceRead
    }

    init(_ root: String, _ calls: FolderWatchCalls = .kernel, _ onChange: @escaping @Sendable () -> Void) {
        let queue = DispatchQueue(label: "saltern.folder")
        self.queue = queue
        self.root = root
        self.calls = calls
        hearing = calls.open().map { descriptor in
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.number, queue: queue)
            source.setEventHandler {
                var buffer = [UInt8](repeating: 0, count: 1 << 14)
                // What has changed does not matter, nor whether the kernel has lost some of it (IN_Q_OVERFLOW): whoever
                // hears of it looks at everything.
                while buffer.withUnsafeMutableBytes({ read(descriptor.number, $0.baseAddress, $0.count) }) > 0 {}
                onChange()
            }
            // The source must not outlive the descriptor.
            source.setCancelHandler { withExtendedLifetime(descriptor) {} }
            source.activate()
            return Hearing(descriptor: descriptor, source: source)
        }
    }

    deinit { hearing?.source.cancel() }

    /// Watches every folder that is there now. One that is watched already stays so.
    /// - Returns: Whether all of them are watched: a change in another one is not heard of.
    func watchAll() -> Bool {
        guard let hearing, let top = system.openRoot(root) else { return false }
        return queue.sync {
            watchTrash(top, hearing.descriptor)
            return watch(top, isRoot: true, hearing.descriptor)
        }
    }

    /// A program that has a displaced file open writes to it in the trash. Without a watch there, later rounds find it.
    private func watchTrash(_ top: Descriptor, _ descriptor: Descriptor) {
        guard let corner = system.openFolder(FolderPath.corner, in: top),
            let trash = system.openFolder(FolderTree.trashFolder, in: corner)
        else { return }
        _ = calls.add(descriptor, "/proc/self/fd/\(trash.number)", UInt32(IN_CLOSE_WRITE | IN_MODIFY | IN_ONLYDIR))
    }

    private func watch(_ folder: Descriptor, isRoot: Bool, _ descriptor: Descriptor) -> Bool {
        let events = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB | IN_ONLYDIR
        // By its descriptor, so that no link in the path is followed.
        var isWhole =
            calls.add(descriptor, "/proc/self/fd/\(folder.number)", UInt32(events))
            // Removed since it was opened.
            || system.status(folder)?.st_nlink == 0
        guard let names = system.names(in: folder) else { return false }
        for bytes in names {
            guard let name = String(validating: bytes, as: UTF8.self), !isRoot || name != FolderPath.corner,
                system.status(name, in: folder)?.isFolder == true
            else { continue }
            if let inner = system.openFolder(name, in: folder) {
                if !watch(inner, isRoot: false, descriptor) { isWhole = false }
            } else if system.status(name, in: folder)?.isFolder == true {
                // It is there, and cannot be opened now.
                isWhole = false
            }
        }
        return isWhole
    }
}

/// The kernel's calls by which a folder is watched, so that tests can have a kernel without room.
struct FolderWatchCalls: Sendable {
    /// - Returns: nil when there is no room for it.
    var open: @Sendable () -> Descriptor?
    /// - Returns: Whether the folder is watched.
    var add: @Sendable (Descriptor, _ path: String, _ events: UInt32) -> Bool

    static let kernel = FolderWatchCalls(
        open: { Descriptor(inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))) },
        add: { inotify_add_watch($0.number, $1, $2) >= 0 })
}
