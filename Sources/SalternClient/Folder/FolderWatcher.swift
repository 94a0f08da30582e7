internal import CPlatform
internal import Dispatch
internal import Foundation

/// Receives the changes below a folder from the kernel (inotify), and schedules their examination.
///
/// `@unchecked Sendable` is safe: all mutable state is changed on its queue.
final class FolderWatcher: @unchecked Sendable {
    private let queue: DispatchQueue
    private let root: String
    private let system = DiskFolders()
    private let calls: FolderWatchCalls
    private let onChange: @Sendable () -> Void
    /// Nil when the kernel has no room for another watcher of this user.
    private var hearing: Hearing?
    private var schedule: FolderSchedule
    /// The paths of watched folders by the kernel's numbers.
    private var folders: [Int32: [UInt8]] = [:]
    private var trash: Int32?
    /// The ignore files at the last complete set-up: ignored folders are not watched.
    private var rules: FolderRules?
    private var isWhole = false
    /// True when the kernel has lost events that `onChange` was not called for.
    private var hasLost = false
    /// The next due time for which `onChange` was called.
    private var announced: ContinuousClock.Instant?

    private struct Hearing {
        let descriptor: Descriptor
        let source: any DispatchSourceRead
    }

    private static let slash = UInt8(ascii: "/")

    /// - Parameter onChange: Is called when an entry is due earlier than before.
    init(
        _ root: String, _ calls: FolderWatchCalls = .kernel, _ schedule: FolderSchedule = FolderSchedule(),
        _ onChange: @escaping @Sendable () -> Void
    ) {
        queue = DispatchQueue(label: "saltern.folder")
        self.root = root
        self.calls = calls
        self.schedule = schedule
        self.onChange = onChange
        guard let descriptor = calls.open() else { return }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.number, queue: queue)
        source.setEventHandler { [weak self] in self?.receive(descriptor) }
        // The source must not outlive the descriptor.
        source.setCancelHandler { withExtendedLifetime(descriptor) {} }
        hearing = Hearing(descriptor: descriptor, source: source)
        source.activate()
    }

    deinit { hearing?.source.cancel() }

    /// Watches every existing folder, and removes waiting entries, because the caller examines everything.
    /// - Returns: True when all of them are watched. The kernel does not report changes in other ones.
    func watchAll() -> Bool {
        guard let hearing, let top = system.openRoot(root) else { return false }
        return queue.sync {
            schedule.takeAll()
            announced = nil
            isWhole = true
            rules = system.status(top).map { FolderRules(system, top, $0.st_dev) }
            watch(top, [], hearing.descriptor)
            watchTrash(top, hearing.descriptor)
            return isWhole
        }
    }

    /// Removes and returns the entries that are due.
    func take(at now: ContinuousClock.Instant) -> Set<[UInt8]> { queue.sync { schedule.take(at: now) } }

    /// The time at which the next entries are due; nil when none wait.
    var nextDue: ContinuousClock.Instant? {
        queue.sync {
            announced = schedule.nextDue
            return announced
        }
    }

    var isWatchingAll: Bool { queue.sync { isWhole } }

    // MARK: Events

    private func receive(_ descriptor: Descriptor) {
        let now = ContinuousClock.now
        // The kernel returns only whole events. The longest has a name of 255 bytes.
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(descriptor.number, $0.baseAddress, $0.count) }
            if count <= 0 { break }
            buffer.withUnsafeBytes { parse(UnsafeRawBufferPointer(rebasing: $0[..<count]), descriptor, now) }
        }
        guard let due = schedule.nextDue, hasLost || announced.map({ due < $0 }) ?? true else { return }
        hasLost = false
        announced = due
        onChange()
    }

    private func parse(
        _ events: UnsafeRawBufferPointer, _ descriptor: Descriptor, _ now: ContinuousClock.Instant
    ) {
        var offset = 0
        while offset + MemoryLayout<inotify_event>.size <= events.count {
            let event = events.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let start = offset + MemoryLayout<inotify_event>.size
            let end = min(start + Int(event.len), events.count)
            note(event, Array(events[start..<end].prefix { $0 != 0 }), descriptor, now)
            offset = end
        }
    }

    private func note(
        _ event: inotify_event, _ name: [UInt8], _ descriptor: Descriptor, _ now: ContinuousClock.Instant
    ) {
        func has(_ flag: Int32) -> Bool { event.mask & UInt32(bitPattern: flag) != 0 }
        if has(Int32(IN_Q_OVERFLOW)) { hasLost = true }
        if has(Int32(IN_Q_OVERFLOW)) || event.wd == trash { return schedule.note(FolderSchedule.everything, at: now) }
        if has(Int32(IN_IGNORED)) {
            folders[event.wd] = nil
            return
        }
        // The folder was moved or removed, which is also an event of its parent.
        guard let folder = folders[event.wd] else { return }
        if name.isEmpty {
            if folder.isEmpty { schedule.note(FolderSchedule.everything, at: now) }
            return
        }
        if folder.isEmpty, name == Array(FolderPath.corner.utf8) { return }
        let path = folder.isEmpty ? name : folder + [Self.slash] + name
        if has(Int32(IN_ISDIR)) {
            if has(Int32(IN_MOVED_FROM)) || has(Int32(IN_DELETE)) { forget(path, descriptor) }
            if has(Int32(IN_CREATE)) || has(Int32(IN_MOVED_TO)) || has(Int32(IN_ATTRIB)) { watch(path, descriptor) }
        }
        schedule.note(path, at: now)
    }

    private func forget(_ path: [UInt8], _ descriptor: Descriptor) {
        for (number, folder) in folders where folder == path || folder.starts(with: path + [Self.slash]) {
            folders[number] = nil
            calls.remove(descriptor, number)
        }
    }

    // MARK: Folders

    /// Watches the trash, where programs write to displaced files that they have open. Without a watch, later rounds
    /// find the change.
    private func watchTrash(_ top: Descriptor, _ descriptor: Descriptor) {
        guard let corner = system.openFolder(FolderPath.corner, in: top),
            let folder = system.openFolder(FolderTrash.folder, in: corner)
        else { return }
        trash = calls.add(
            descriptor, "/proc/self/fd/\(folder.number)", UInt32(IN_CLOSE_WRITE | IN_MODIFY | IN_ONLYDIR))
    }

    /// Watches a new folder and its content.
    private func watch(_ path: [UInt8], _ descriptor: Descriptor) {
        guard var folder = system.openRoot(root) else { return isWhole = false }
        for name in path.split(separator: Self.slash) {
            // It may have been removed or renamed, which is another event.
            guard let name = String(validating: name, as: UTF8.self),
                let inner = system.openFolder(name, in: folder)
            else { return }
            folder = inner
        }
        watch(folder, path, descriptor)
    }

    private func watch(_ folder: Descriptor, _ path: [UInt8], _ descriptor: Descriptor) {
        let names = path.split(separator: Self.slash).map { String(decoding: $0, as: UTF8.self) }
        if case .ignored? = rules?.state(in: names[...]) { return }
        let events =
            IN_CREATE | IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB | IN_ONLYDIR
        // By its descriptor, so that no link in the path is followed.
        if let number = calls.add(descriptor, "/proc/self/fd/\(folder.number)", UInt32(events)) {
            folders[number] = path
        } else if system.status(folder)?.st_nlink != 0 {
            // It still exists.
            isWhole = false
        }
        guard let names = system.names(in: folder) else { return isWhole = false }
        for bytes in names {
            guard let name = String(validating: bytes, as: UTF8.self),
                !path.isEmpty || name != FolderPath.corner, system.status(name, in: folder)?.isFolder == true
            else { continue }
            if let inner = system.openFolder(name, in: folder) {
                watch(inner, path.isEmpty ? bytes : path + [Self.slash] + bytes, descriptor)
            } else if system.status(name, in: folder)?.isFolder == true {
                // It exists, and cannot be opened now.
                isWhole = false
            }
        }
    }
}

/// The kernel's calls that watch a folder, replaceable in tests of a kernel without room.
struct FolderWatchCalls: Sendable {
    /// Opens a watcher; nil when there is no room for it.
    var open: @Sendable () -> Descriptor?
    /// Watches a folder.
    /// - Returns: The number of the folder in events; nil when it is not watched.
    var add: @Sendable (Descriptor, _ path: String, _ events: UInt32) -> Int32?
    var remove: @Sendable (Descriptor, _ number: Int32) -> Void

    static let kernel = FolderWatchCalls(
        open: { Descriptor(inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))) },
        add: { descriptor, path, events in
            let number = inotify_add_watch(descriptor.number, path, events)
            return number >= 0 ? number : nil
        },
        remove: { _ = inotify_rm_watch($0.number, $1) })
}
