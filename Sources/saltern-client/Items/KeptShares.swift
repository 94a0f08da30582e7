import CommandLineKit
import Cryptography
import Foundation
import SalternClient

/// Fetched shares that have used a view and that no key has opened yet, still sealed.
///
/// Each is a file that only its owner can read, in `$XDG_DATA_HOME/saltern-client/shares`.
struct KeptShares {
    private let folder: URL

    init(_ environment: [String: String]) throws(CommandFailure) {
        folder = try ProfileStore.data(environment).appending(path: "shares", directoryHint: .isDirectory)
    }

    /// A file on the disk for a share that is about to be fetched.
    struct Place {
        fileprivate let begun: PrivateFile.Begun
        fileprivate let temporary: String
        let path: String

        /// Stores the fetched share.
        func keep(_ share: FetchedShare) throws(CommandFailure) {
            guard let data = try? JSONEncoder().encode(share) else { return remove() }
            try begun.finish(with: data)
            guard rename(temporary, path) == 0 else { return remove() }
            // The share cannot be fetched again.
            guard FileFolder.sync(of: path) else { throw PrivateFile.unusable(path) }
        }

        func remove() {
            unlink(temporary)
            unlink(path)
        }
    }

    /// Returns the share that was fetched earlier for the link; nil when there is none.
    func share(_ address: ShareAddress) -> FetchedShare? {
        FileManager.default.contents(atPath: file(address))
            .flatMap { try? JSONDecoder().decode(FetchedShare.self, from: $0) }
    }

    /// Creates the file of a share, before it is fetched.
    func begin(_ address: ShareAddress) throws -> Place {
        try? FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let path = file(address)
        let temporary = path + "." + Hex.encode(SecureRandom.bytes(8))
        return Place(begun: try PrivateFile.begin(temporary), temporary: temporary, path: path)
    }

    func remove(_ address: ShareAddress) { unlink(file(address)) }

    func file(_ address: ShareAddress) -> String {
        let name = SHA256.hash(Array("\(address.server)/s/\(address.id)".utf8)).bytes
        return folder.appending(path: Hex.encode(name) + ".json").path
    }
}
