import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A disk that can only be read.
@Suite struct ReadOnlyStoreTests {
    @Test func `a store that can only be read says so`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/store.sqlite"
        let store = try Store(path: path)
        // As it is on a disk that the kernel lets nobody write on any more.
        try store.database.execute("PRAGMA query_only = ON")
        #expect(throws: StoreError.readOnly) { try store.beginListing() }
    }
}
