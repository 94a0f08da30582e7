import CPlatform
import Foundation
import Synchronization

@testable import SalternClient

/// The disk, with a count of the entries that are examined and the folders that are listed.
final class CountedFolders: FolderSystem {
    /// Called before each examination and each change of a name.
    private let onCall: @Sendable () -> Void
    private let disk = DiskFolders()
    private let calls = Mutex(0)
    private let listed = Mutex(0)

    init(onCall: @escaping @Sendable () -> Void = {}) { self.onCall = onCall }

    /// Returns how many calls there were since it was asked last.
    func takeCount() -> Int {
        calls.withLock { count in
            defer { count = 0 }
            return count
        }
    }

    /// Returns how many names listings had since it was asked last.
    func takeListedNames() -> Int {
        listed.withLock { count in
            defer { count = 0 }
            return count
        }
    }

    private func counted<Result>(_ call: @autoclosure () -> Result) -> Result {
        calls.withLock { $0 += 1 }
        return visited(call())
    }

    private func visited<Result>(_ call: @autoclosure () -> Result) -> Result {
        onCall()
        return call()
    }

    func openRoot(_ path: String) -> Descriptor? { counted(disk.openRoot(path)) }
    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? { counted(disk.openFolder(name, in: folder)) }
    func openFile(_ name: String, in folder: Descriptor) -> Descriptor? { counted(disk.openFile(name, in: folder)) }
    func entry(_ name: String, in folder: Descriptor) -> FolderEntry? { counted(disk.entry(name, in: folder)) }
    func names(in folder: Descriptor) -> [[UInt8]]? {
        let names = counted(disk.names(in: folder))
        listed.withLock { $0 += names?.count ?? 0 }
        return names
    }
    func status(_ descriptor: Descriptor) -> stat? { counted(disk.status(descriptor)) }
    func createFile(_ name: String, in folder: Descriptor) -> Descriptor? { visited(disk.createFile(name, in: folder)) }
    func makeFolder(_ name: String, in folder: Descriptor) -> Bool { visited(disk.makeFolder(name, in: folder)) }
    func removeFolder(_ name: String, in folder: Descriptor) -> Bool { disk.removeFolder(name, in: folder) }
    func removeFile(_ name: String, in folder: Descriptor) { visited(disk.removeFile(name, in: folder)) }
    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool {
        visited(disk.rename(name, in: from, to: newName, in: to))
    }
    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool {
        disk.rename(bytes: bytes, in: folder, to: name)
    }
    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool {
        visited(disk.exchange(name, in: one, with: other, in: two))
    }
    func sync(_ descriptor: Descriptor) -> Bool { disk.sync(descriptor) }
    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool { disk.write(bytes, to: file) }
    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        disk.read(file, at: offset, into: buffer)
    }
    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool {
        disk.set(file, modified: modified, mode: mode)
    }
}
