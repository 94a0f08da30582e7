internal import CPlatform
internal import Dispatch
internal import Foundation

/// Hears of changes beneath a folder from the kernel (inotify).
///
/// `@unchecked Sendable` is safe: all that changes is changed on its queue.
final class FolderWatcher: @unchecked Sendable {
    private let queue = DispatchQueue(label: "saltern.folder")
    private let descriptor: Descriptor
    private let source: any DispatchSourceRead
    private let root: String
    private let system = DiskFolders()

    /// - Returns: nil when the kernel has no room for it.
    init?(_ root: String, _ onChange: @escaping @Sendable () -> Void) {
        guard let descriptor = Descriptor(inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))) else { return nil }
        self.root = root
        self.descriptor = descriptor
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor.number, queue: queue)
        source.setEventHandler {
            var buffer = [UInt8](repeating: 0, count: 1 << 14)
            // What has changed does not matter: whoever hears of it looks at everything.
            while buffer.withUnsafeMutableBytes({ read(descriptor.number, $0.baseAddress, $0.count) }) > 0 {}
            onChange()
        }
        // The source must not outlive the descriptor.
        source.setCancelHandler { withExtendedLifetime(descriptor) {} }
        source.activate()
    }

    deinit { source.cancel() }

    /// Watches every folder that is there now. One that is watched already stays so.
    func watchAll() {
        guard let top = system.openRoot(root) else { return }
        queue.sync { watch(top, isRoot: true) }
    }

    private func watch(_ folder: Descriptor, isRoot: Bool) {
        let events = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB | IN_ONLYDIR
        // By its descriptor, so that no link in the path is followed.
        _ = inotify_add_watch(descriptor.number, "/proc/self/fd/\(folder.number)", UInt32(events))
        for bytes in system.names(in: folder) ?? [] {
            guard let name = String(validating: bytes, as: UTF8.self), !isRoot || name != FolderPath.corner,
                system.status(name, in: folder)?.isFolder == true,
                let inner = system.openFolder(name, in: folder)
            else { continue }
            watch(inner, isRoot: false)
        }
    }
}
