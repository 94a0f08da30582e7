import Cryptography

@testable import SalternClient

/// What a person sees of an item.
struct WrittenVersion: Hashable, Comparable {
    var collection: String
    var title: String?
    var text: String

    init(collection: String, title: String?, text: String) {
        self.collection = collection
        self.title = title
        self.text = text
    }

    init(_ item: PlainItem, in collection: String) {
        self.collection = collection
        title = item.title
        text = item.body.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    var item: PlainItem { PlainItem(title: title, body: SecureBytes(copying: text.utf8)) }

    static func < (left: Self, right: Self) -> Bool {
        (left.text, left.title ?? "", left.collection) < (right.text, right.title ?? "", right.collection)
    }
}

/// What a person does to an item.
enum WrittenStep: Sendable {
    /// - Parameter over: What they saw and changed.
    case write(WrittenVersion, over: WrittenVersion?)
    case delete(ItemID, seen: WrittenVersion)
    case restore(ItemID)

    /// Whether it has happened, on the device where it was begun.
    func hasHappened(_ present: [ItemID: WrittenVersion]) -> Bool {
        switch self {
        case .write(let version, _): present.values.contains(version)
        case .delete(let id, _): present[id] == nil
        case .restore(let id): present[id] != nil
        }
    }
}

/// Which versions a person wrote and has not replaced or deleted where they could see them.
struct WrittenVersions {
    private(set) var leaves: Set<WrittenVersion> = []
    private var count = 0

    /// A name that no version has had.
    mutating func name(_ kind: String) -> String {
        count += 1
        return "\(kind) \(count)"
    }

    /// Notes what has happened.
    /// - Parameter present: What is on the device where it happened, for what was restored.
    mutating func note(_ step: WrittenStep, _ present: [ItemID: WrittenVersion]) {
        switch step {
        case .write(let version, let seen):
            if let seen { leaves.remove(seen) }
            leaves.insert(version)
        case .delete(_, let seen): leaves.remove(seen)
        case .restore(let id): if let version = present[id] { leaves.insert(version) }
        }
    }
}
