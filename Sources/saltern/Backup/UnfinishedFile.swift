import CPlatform
import CommandLineKit
import Foundation

/// A file that is given its name when it is whole. Until then it has none, and the system removes it with whoever writes
/// it; where the folder's file system has no such files, its name is one that no other has.
final class UnfinishedFile {
    let content: OpenFile
    private let file: String
    /// What it is called until it is whole, if anything.
    private var unfinished: String?

    /// - Parameters:
    ///   - file: What it will be called; in the same folder.
    ///   - hasName: Whether it has a name from the beginning, also where it need not.
    /// - Throws: ``CommandFailure`` when it cannot be written there.
    init(_ file: String, hasName: Bool = false) throws(CommandFailure) {
        self.file = file
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        // A file without a name gets one through /proc, which a chroot need not have.
        let hasName = hasName || access("/proc/self/fd", X_OK) != 0
        var descriptor = hasName ? -1 : open(folder, O_RDWR | O_CLOEXEC | __O_TMPFILE, mode_t(0o600))
        if descriptor < 0 {
            let name = file + "." + UUID().uuidString.prefix(8).lowercased() + ".unfinished"
            descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.failure("cannot write \(file)") }
            unfinished = name
        }
        content = OpenFile(takingOwnershipOf: descriptor)
    }

    deinit { if let unfinished { unlink(unfinished) } }

    /// Gives it its name, which nobody else's file loses by that.
    /// - Throws: ``CommandFailure`` when there is a file of that name by now, or the disk does not take it.
    func keep() throws(CommandFailure) {
        guard fsync(content.descriptor) == 0 else { throw Self.failure("cannot keep \(file)") }
        guard name() == 0 else {
            if errno == EEXIST { throw CommandFailure("\(file) is there already") }
            throw Self.failure("cannot keep \(file)")
        }
        // The name is to be there after a power failure too.
        let folder = open(URL(fileURLWithPath: file).deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw Self.failure("cannot keep \(file): its folder cannot be opened") }
        let result = fsync(folder)
        let code = errno
        close(folder)
        // EINVAL: a file system without this. It has nothing that could be lost.
        if result != 0, code != EINVAL {
            errno = code
            throw Self.failure("\(file) may be gone after a power failure: its folder")
        }
    }

    private func name() -> Int32 {
        guard let unfinished else {
            return linkat(AT_FDCWD, "/proc/self/fd/\(content.descriptor)", AT_FDCWD, file, AT_SYMLINK_FOLLOW)
        }
        // 1 is RENAME_NOREPLACE. Some file systems know only the one, and some only the other.
        if saltern_renameat2(AT_FDCWD, unfinished, AT_FDCWD, file, 1) == 0 {
            self.unfinished = nil
            return 0
        }
        return errno == EEXIST ? -1 : link(unfinished, file)
    }

    private static func failure(_ what: String) -> CommandFailure {
        CommandFailure("\(what): \(String(cString: strerror(errno)))")
    }
}
