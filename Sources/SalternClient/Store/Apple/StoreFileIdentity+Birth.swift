internal import Foundation

extension StoreFileIdentity {
    /// Returns the creation time; nil where the file system has none.
    static func birth(ofFileAt path: String) -> String? {
        let values = try? URL(filePath: path).resourceValues(forKeys: [.creationDateKey])
        return (values?.creationDate).map { "\($0.timeIntervalSinceReferenceDate)" }
    }
}
