import Foundation

@testable import SalternClient

/// The files of the kernel, for a process that may be killed at any call that changes them.
struct MortalFolders: FolderSystem {
    private let inner = DiskFolders()
    let life: StoreLife

    /// Does a call, unless the process ends instead.
    /// - Parameter count: How many bytes it writes; 0 for what cannot be done by halves.
    private func happens(_ count: Int = 0, _ call: (Int) -> Bool) -> Bool {
        life.around(count) { call($0) ? 0 : -1 } == 0
    }

    func openRoot(_ path: String) -> Descriptor? { inner.openRoot(path) }
    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFolder(name, in: folder) }
    func openFile(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFile(name, in: folder) }
    func entry(_ name: String, in folder: Descriptor) -> FolderEntry? { inner.entry(name, in: folder) }
    func status(_ descriptor: Descriptor) -> stat? { inner.status(descriptor) }
    func names(in folder: Descriptor) -> [[UInt8]]? { inner.names(in: folder) }

    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        inner.read(file, at: offset, into: buffer)
    }

    func openForAppending(_ name: String, in folder: Descriptor) -> Descriptor? {
        inner.openForAppending(name, in: folder)
    }

    func truncate(_ file: Descriptor, to count: Int64) -> Bool { happens { _ in inner.truncate(file, to: count) } }

    func createFile(_ name: String, in folder: Descriptor) -> Descriptor? {
        var file: Descriptor?
        _ = happens { _ in
            file = inner.createFile(name, in: folder)
            return file != nil
        }
        return file
    }

    func makeFolder(_ name: String, in folder: Descriptor) -> Bool {
        happens { _ in inner.makeFolder(name, in: folder) }
    }

    func removeFolder(_ name: String, in folder: Descriptor) -> Bool {
        happens { _ in inner.removeFolder(name, in: folder) }
    }

    func removeFile(_ name: String, in folder: Descriptor) {
        _ = happens { _ in
            inner.removeFile(name, in: folder)
            return true
        }
    }

    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool {
        happens { _ in inner.rename(name, in: from, to: newName, in: to) }
    }

    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool {
        happens { _ in inner.rename(bytes: bytes, in: folder, to: name) }
    }

    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool {
        happens { _ in inner.exchange(name, in: one, with: other, in: two) }
    }

    func sync(_ descriptor: Descriptor) -> Bool { happens { _ in inner.sync(descriptor) } }

    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool {
        happens(bytes.count) { inner.write(UnsafeRawBufferPointer(rebasing: bytes.prefix($0)), to: file) }
    }

    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool {
        happens { _ in inner.set(file, modified: modified, mode: mode) }
    }
}
