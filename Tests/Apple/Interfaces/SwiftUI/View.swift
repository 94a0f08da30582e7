// What the example app uses of SwiftUI, declared as Apple's documentation does, so that its screens are type-checked. Nothing is
// shown: no body is ever computed.

/// https://developer.apple.com/documentation/swiftui/view
@MainActor @preconcurrency
public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Body { get }
}

extension Never: View {
    public var body: Never { return fatalError("a stand-in shows nothing") }
}

/// A view without a body of its own, as those of SwiftUI are.
@MainActor @preconcurrency
public protocol StandInView: View where Body == Never {}

extension StandInView {
    public var body: Never { return fatalError("a stand-in shows nothing") }
}

/// https://developer.apple.com/documentation/swiftui/emptyview
public struct EmptyView: StandInView {
    nonisolated public init() {}
}

extension Optional: View where Wrapped: View {
    public var body: Never { return fatalError("a stand-in shows nothing") }
}

/// https://developer.apple.com/documentation/swiftui/viewbuilder
@resultBuilder
public enum ViewBuilder {
    public static func buildBlock() -> EmptyView { EmptyView() }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> TupleView<
        (repeat each Content)
    > {
        TupleView()
    }
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<First: View, Second: View>(first: First) -> ConditionalView<First, Second> {
        ConditionalView()
    }
    public static func buildEither<First: View, Second: View>(second: Second) -> ConditionalView<First, Second> {
        ConditionalView()
    }
}

/// https://developer.apple.com/documentation/swiftui/tupleview
public struct TupleView<Content>: StandInView {
    nonisolated init() {}
}

/// https://developer.apple.com/documentation/swiftui/_conditionalcontent
public struct ConditionalView<First: View, Second: View>: StandInView {
    nonisolated init() {}
}

/// A view to which a modifier was applied.
public struct ModifiedView: StandInView {
    nonisolated init() {}
}
